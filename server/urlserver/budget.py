"""What large messages share while they are worked on: parsed, a message takes ten times its size and more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Budget:
    """So much at the same time, in the order in which it was asked for. For one event loop."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._left = total
        self._turn = asyncio.Lock()  # who has it waits for room; others wait for the lock, which is fair
        self._freed = asyncio.Event()

    @asynccontextmanager
    async def share(self, wanted: int) -> AsyncIterator[None]:
        """Waits until it can be had. Who wants more than there is gets all of it."""
        wanted = min(wanted, self._total)
        async with self._turn:
            while self._left < wanted:
                self._freed.clear()
                await self._freed.wait()
            self._left -= wanted
        try:
            yield
        finally:
            self._left += wanted
            self._freed.set()
