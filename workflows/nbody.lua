-- Gravity among many bodies: a user kernel in CUDA C++, with tiles in shared memory, stepped by leapfrog on a rented
-- GPU, or on its CPU. Reports how well the total energy is conserved.
--
--   rille run workflows/nbody.lua [--bodies 1024] [--steps 50] [--dt 0.002] [--seed 1]
local rille = require "rille"

local args = rille.args { bodies = 1024, steps = 50, dt = 0.002, softening = 0.1, seed = 1, gpu = "any", budget = 5.00 }

rille.budget { limit = args.budget, alert = 0.8 }
local box = rille.rent("simulator", { gpu = args.gpu, ttl = "2h" })

local result = box:call("simulate", { args = args }, function(args)
  local dev, n = rille.device(), args.bodies
  -- One thread per body; a block loads TILE bodies at a time into shared memory, where all its threads read them.
  local accelerate = dev:kernel([[
    __global__ void accelerate(int n, float soft2, const float4* body, float4* velocity, float4* out, float dt) {
      __shared__ float4 tile[TILE];
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      float4 me = i < n ? body[i] : make_float4(0, 0, 0, 0);
      float ax = 0, ay = 0, az = 0, potential = 0;
      for (int first = 0; first < n; first += TILE) {
        int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? body[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < TILE; ++k) {
          float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
          float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + soft2), pull = tile[k].w * inverse * inverse * inverse;
          ax += dx * pull; ay += dy * pull; az += dz * pull;
          if (first + k != i) potential -= tile[k].w * inverse;
        }
        __syncthreads();
      }
      if (i >= n) return;
      // Half a kick before and half after: the velocity in between belongs to this instant, and gives the energy.
      float4 v = velocity[i];
      float vx = v.x + ax * dt / 2, vy = v.y + ay * dt / 2, vz = v.z + az * dt / 2;
      float kinetic = (vx * vx + vy * vy + vz * vz) / 2;
      velocity[i] = make_float4(vx + ax * dt / 2, vy + ay * dt / 2, vz + az * dt / 2, me.w * (kinetic + potential / 2));
      out[i] = make_float4(me.x + velocity[i].x * dt, me.y + velocity[i].y * dt, me.z + velocity[i].z * dt, me.w);
    }
  ]], { defines = { TILE = 128 } })

  dev:seed(args.seed)
  local here = dev:randn { n, 4 }
  here:narrow(2, 4, 1):fill_(1 / n)                        -- masses: the total is one
  local there, velocity = here:clone(), dev:zeros { n, 4 }
  local go = accelerate:bind { grid = math.ceil(n / 128), block = 128 }
  local function step()
    go(n, args.softening ^ 2, here, velocity, there, args.dt)
    here, there = there, here
  end
  local function energy() return velocity:narrow(2, 4, 1):sum():item() end

  step()
  local before, began = energy(), dev:record()
  for i = 2, args.steps do
    step()
    if i % 25 == 0 then print(("step %5d  energy %.6f"):format(i, energy())) end
  end
  local seconds, after = began:elapsed(dev:record()), energy()
  return { device = dev.name, before = before, after = after, drift = math.abs(after / before - 1),
    rate = n * n * (args.steps - 1) / seconds, rate_unit = "interactions/s", peak_memory = dev:memory().peak }
end)

print(("energy %.6f, then %.6f: it drifted by %.2e; %.3g %s"):format(result.before, result.after, result.drift,
  result.rate, result.rate_unit))
box:release()
return result
