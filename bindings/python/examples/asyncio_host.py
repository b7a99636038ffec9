"""Rille in an asyncio program: Python functions and coroutines for scripts, arrays shared without a copy.
python asyncio_host.py"""
import asyncio

import numpy

import rille

SCRIPT = """
local rille, app = require "rille", require "app"
return rille.map("fetch", { "a", "b" }, function(name) return app.fetch(name) end)
"""


async def fetch(name):
    await asyncio.sleep(0.02)  # other fibers and other tasks go on
    return f"the content of {name}"


async def main():
    async with rille.Runtime() as runtime:
        runtime.module("app", fetch=fetch, effect="step")
        print(await runtime.run(SCRIPT))

        scale = runtime.script("return { scale = function(t, by) return t * by end }").scale
        array = numpy.arange(4, dtype=numpy.float32)
        print(scale(array, 2.5).numpy())

        try:
            await runtime.run("error { kind = 'quota', message = 'no more today' }")
        except rille.Error as error:
            print(error.kind, "-", error.message)


if __name__ == "__main__":
    asyncio.run(main())
