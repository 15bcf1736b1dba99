"""`azure.servicebus.aio.AutoLockRenewer`: locks of messages and of sessions, kept and lost.

The clock stands still, so that a lock lasts however slow the SDK is; time passes where a test lets it.
"""

import asyncio

from azure.servicebus.aio import AutoLockRenewer
from azure.servicebus.exceptions import AutoLockRenewFailed

from aio_support import Queue, eventually, receive
from support import message


async def until_renewed(renewable, end):
    async def is_renewed():
        return renewable.locked_until_utc > end

    await eventually(is_renewed, "the renewal")


async def test_the_auto_lock_renewer_keeps_the_lock_of_a_message(own_broker):
    own_broker.freeze()
    async with Queue(own_broker, "brief") as brief, brief.receiver() as receiver, AutoLockRenewer() as renewer:
        await brief.send(message())
        (held,) = await receive(receiver)
        end = held.locked_until_utc
        own_broker.advance("PT4S")
        renewer.register(receiver, held, max_lock_renewal_duration=60)
        await until_renewed(held, end)
        own_broker.advance("PT4S")
        await receiver.complete_message(held)
        await eventually(brief.is_empty, "the removal of the completed message")


async def test_many_locks_are_renewed_at_the_same_time(own_broker):
    """The SDK gives requests that are made at the same time the same delivery id and tag."""
    own_broker.freeze()
    async with Queue(own_broker, "brief") as brief, brief.sender() as sender, brief.receiver() as receiver:
        await sender.send_messages([message(str(number)) for number in range(50)])
        held = await receive(receiver, 50)
        for _ in range(3):
            own_broker.advance("PT4S")
            await asyncio.gather(*(receiver.renew_message_lock(one) for one in held))
        await asyncio.gather(*(receiver.complete_message(one) for one in held))
        await eventually(brief.is_empty, "the removal of the completed messages")


async def test_the_auto_lock_renewer_keeps_the_lock_of_a_session(own_broker):
    own_broker.freeze()
    async with Queue(own_broker, "brief-sessions") as sessions, AutoLockRenewer() as renewer:
        await sessions.send(message(session_id="a"))
        async with sessions.receiver(session_id="a", auto_lock_renewer=renewer) as holder:
            (held,) = await receive(holder)
            end = holder.session.locked_until_utc
            own_broker.advance("PT4S")
            await until_renewed(holder.session, end)
            own_broker.advance("PT4S")
            await holder.complete_message(held)
            await holder.session.set_state(b"still mine")


async def test_an_iterator_with_an_auto_lock_renewer_keeps_each_lock(own_broker):
    own_broker.freeze()
    async with Queue(own_broker, "brief") as brief, AutoLockRenewer(max_lock_renewal_duration=60) as renewer:
        await brief.send(message("one"), message("two"))
        count = 0
        async with brief.receiver(auto_lock_renewer=renewer) as receiver:
            async for held in receiver:
                end = held.locked_until_utc
                own_broker.advance("PT4S")
                await until_renewed(held, end)
                own_broker.advance("PT4S")
                await receiver.complete_message(held)
                count += 1
                if count == 2:
                    break
        await eventually(brief.is_empty, "the removal of the completed messages")


async def test_the_auto_lock_renewer_tells_that_a_lock_was_lost(own_broker):
    own_broker.freeze()
    lost = asyncio.get_running_loop().create_future()

    async def on_lock_renew_failure(renewable, error):
        lost.set_result((renewable, error))

    async with Queue(own_broker, "brief") as brief, brief.receiver() as receiver, AutoLockRenewer() as renewer:
        await brief.send(message())
        (held,) = await receive(receiver)
        own_broker.advance("PT5S")
        renewer.register(receiver, held, on_lock_renew_failure=on_lock_renew_failure)
        renewable, error = await lost
        assert renewable is held
        assert isinstance(error, AutoLockRenewFailed)
        (again,) = await receive(receiver)
        assert again.delivery_count == 1
        await receiver.complete_message(again)
