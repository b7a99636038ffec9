-- A picture by ray tracing: a user kernel shoots rays at spheres over a chequered floor, with shadows and reflections;
-- the picture is fetched as a PNG.
--
--   rille run workflows/raytrace.lua [--width 320] [--height 200] [--samples 2] [--out picture.png]
local rille = require "rille"

local args = rille.args { width = 320, height = 200, samples = 2, bounces = 4, out = "picture.png", gpu = "any",
  budget = 5.00 }

rille.budget { limit = args.budget, alert = 0.8 }
local box = rille.rent("renderer", { gpu = args.gpu, ttl = "1h" })

local result = box:call("render", { args = args }, function(args)
  local bit = require "bit"
  local dev, w, h = rille.device(), args.width, args.height
  local render = dev:kernel [[
    struct Hit { float t; float3 normal, color; float mirror; };

    __device__ float3 add(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
    __device__ float3 mul(float3 a, float s) { return make_float3(a.x * s, a.y * s, a.z * s); }
    __device__ float dot3(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
    __device__ float3 unit(float3 a) { return mul(a, rsqrtf(dot3(a, a))); }

    // spheres: x y z radius, red green blue mirror
    __device__ bool trace(int n, const float* s, float3 from, float3 way, Hit* hit) {
      hit->t = 1e20f;
      for (int i = 0; i < n; ++i, s += 8) {
        float3 o = make_float3(from.x - s[0], from.y - s[1], from.z - s[2]);
        float b = dot3(o, way), root = b * b - dot3(o, o) + s[3] * s[3];
        if (root <= 0) continue;
        float t = -b - sqrtf(root);
        if (t < 1e-3f || t >= hit->t) continue;
        hit->t = t;
        hit->normal = mul(add(o, mul(way, t)), 1 / s[3]);
        hit->color = make_float3(s[4], s[5], s[6]);
        hit->mirror = s[7];
      }
      float t = -from.y / way.y;                            // the floor
      if (t > 1e-3f && t < hit->t) {
        float3 p = add(from, mul(way, t));
        bool dark = ((int)floorf(p.x) + (int)floorf(p.z)) & 1;
        hit->t = t;
        hit->normal = make_float3(0, 1, 0);
        hit->color = dark ? make_float3(0.15f, 0.15f, 0.18f) : make_float3(0.85f, 0.85f, 0.8f);
        hit->mirror = 0.15f;
      }
      return hit->t < 1e19f;
    }

    __global__ void render(int w, int h, int samples, int bounces, int n, const float* spheres, unsigned char* out) {
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      if (x >= w || y >= h) return;
      float3 sum = make_float3(0, 0, 0), sun = unit(make_float3(-0.6f, 1.0f, -0.7f));
      for (int k = 0; k < samples * samples; ++k) {
        float u = (x + (k % samples + 0.5f) / samples - w * 0.5f) / h;
        float v = (h * 0.5f - y - (k / samples + 0.5f) / samples) / h;
        float3 from = make_float3(0, 1.6f, -6), way = unit(make_float3(u, v - 0.08f, 1.1f));
        float weight = 1;
        for (int depth = 0; depth <= bounces; ++depth) {
          Hit hit;
          if (!trace(n, spheres, from, way, &hit)) {
            float sky = 0.5f + 0.5f * way.y;
            sum = add(sum, mul(make_float3(0.9f - 0.5f * sky, 0.95f - 0.3f * sky, 1.0f), weight));
            break;
          }
          float3 at = add(from, mul(way, hit.t));
          Hit other;
          float light = fmaxf(dot3(hit.normal, sun), 0.0f);
          if (light > 0 && trace(n, spheres, at, sun, &other)) light = 0;
          sum = add(sum, mul(hit.color, weight * (1 - hit.mirror) * (0.2f + 0.8f * light)));
          weight *= hit.mirror;
          if (weight < 0.01f) break;
          way = add(way, mul(hit.normal, -2 * dot3(way, hit.normal)));
          from = at;
        }
      }
      float scale = 255.0f / (samples * samples);
      unsigned char* p = out + (y * w + x) * 3;
      p[0] = (unsigned char)fminf(sum.x * scale, 255.0f);
      p[1] = (unsigned char)fminf(sum.y * scale, 255.0f);
      p[2] = (unsigned char)fminf(sum.z * scale, 255.0f);
    }
  ]]
  local spheres = dev:tensor {
    { 0, 1, 0, 1, 0.9, 0.9, 0.95, 0.8 }, { -2.1, 0.7, 0.8, 0.7, 0.9, 0.25, 0.2, 0.1 },
    { 1.9, 0.6, -0.9, 0.6, 0.2, 0.5, 0.9, 0.2 }, { 0.6, 0.3, -2.2, 0.3, 0.95, 0.8, 0.2, 0.3 },
  }
  local picture = dev:zeros { h, w, 3, dtype = "u8" }
  local function draw(columns, rows)
    render:launch({ grid = { columns, rows }, block = { 16, 16 } }, w, h, args.samples, args.bounces, spheres:size(1),
      spheres, picture)
    return dev:record()
  end
  local began = draw(1, 1)                                  -- a corner: it loads the kernel
  local seconds = began:elapsed(draw(math.ceil(w / 16), math.ceil(h / 16)))

  -- A PNG with stored, uncompressed data (RFC 1950, 1951; PNG 1.2).
  local crcs = {}
  for i = 0, 255 do
    local c = i
    for _ = 1, 8 do c = bit.band(c, 1) == 1 and bit.bxor(bit.rshift(c, 1), 0xEDB88320) or bit.rshift(c, 1) end
    crcs[i] = c
  end
  local function word(n)
    return string.char(bit.band(bit.rshift(n, 24), 255), bit.band(bit.rshift(n, 16), 255),
      bit.band(bit.rshift(n, 8), 255), bit.band(n, 255))
  end
  local function chunk(kind, data)
    local all, crc = kind .. data, bit.bnot(0)
    for i = 1, #all do crc = bit.bxor(bit.rshift(crc, 8), crcs[bit.band(bit.bxor(crc, all:byte(i)), 255)]) end
    return word(#data) .. all .. word(bit.bnot(crc))
  end
  local rows, bytes = {}, picture:bytes()
  for y = 1, h do rows[y] = "\0" .. bytes:sub((y - 1) * w * 3 + 1, y * w * 3) end
  local raw = table.concat(rows)
  local a, b, blocks = 1, 0, {}
  for i = 1, #raw do
    a = (a + raw:byte(i)) % 65521
    b = (b + a) % 65521
  end
  for from = 1, #raw, 65535 do
    local part = raw:sub(from, from + 65534)
    local low, high = #part % 256, math.floor(#part / 256)
    blocks[#blocks + 1] = string.char(from + 65535 > #raw and 1 or 0, low, high, 255 - low, 255 - high) .. part
  end
  local file = assert(io.open("picture.png", "wb"))
  file:write("\137PNG\r\n\26\n", chunk("IHDR", word(w) .. word(h) .. "\8\2\0\0\0"),
    chunk("IDAT", "\120\1" .. table.concat(blocks) .. word(b * 65536 + a)), chunk("IEND", ""))
  file:close()
  local brightness = picture:to("f32"):mean():item()
  return { device = dev.name, width = w, height = h, brightness = brightness,
    rate = w * h * args.samples ^ 2 / seconds, rate_unit = "rays/s", peak_memory = dev:memory().peak }
end)

box:get("picture.png", args.out)
print(("%d x %d pixels in %s, mean brightness %.1f; %.3g %s from the camera"):format(result.width, result.height,
  args.out, result.brightness, result.rate, result.rate_unit))
box:release()
return result
