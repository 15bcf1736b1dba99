"""`azure.servicebus.aio`: messages taken by `async for`, and receivers that prefetch."""

from aio_support import Queue, eventually, receive
from support import DEAD_LETTER, RECEIVE_AND_DELETE, body_of, message


def numbered(count):
    return [message(f"number {number}") for number in range(count)]


def bodies(received):
    return [body_of(one).decode() for one in received]


async def test_an_iterator_gets_every_message_and_ends_when_none_comes(own_broker):
    async with Queue(own_broker) as orders:
        await orders.send(*numbered(10))
        got = []
        async with orders.receiver(max_wait_time=1) as receiver:
            async for one in receiver:
                got.append(one)
                await receiver.complete_message(one)
        assert bodies(got) == [f"number {number}" for number in range(10)]
        await eventually(orders.is_empty, "the removal of the completed messages")


async def test_an_iterator_gets_what_is_sent_while_it_waits(own_broker):
    async with Queue(own_broker) as orders, orders.receiver(receive_mode=RECEIVE_AND_DELETE) as receiver:
        await orders.send(message("0"))
        count = 0
        async for one in receiver:
            count += 1
            assert body_of(one) == b"%d" % (count - 1)
            if count == 5:
                break
            await orders.send(message(str(count)))
        assert await orders.is_empty()


async def test_an_iterator_settles_each_message_in_its_own_way(own_broker):
    async with Queue(own_broker) as orders:
        await orders.send(message("complete"), message("dead-letter"), message("defer"))
        deferred = []
        async with orders.receiver(max_wait_time=1) as receiver:
            async for one in receiver:
                match body_of(one).decode():
                    case "complete":
                        await receiver.complete_message(one)
                    case "dead-letter":
                        await receiver.dead_letter_message(one, reason="as told")
                    case "defer":
                        await receiver.defer_message(one)
                        deferred.append(one.sequence_number)
            assert bodies(await receiver.receive_deferred_messages(deferred)) == ["defer"]
        assert bodies(await orders.peek(sub_queue=DEAD_LETTER)) == ["dead-letter"]


async def test_prefetched_messages_come_in_order_and_are_locked(own_broker):
    async with Queue(own_broker) as orders, orders.receiver(prefetch_count=10) as receiver:
        await orders.send(*numbered(30))
        received = await receive(receiver, 5)
        assert bodies(received) == [f"number {number}" for number in range(5)]
        # The five that are taken and the ten behind them belong to this receiver.
        async with orders.receiver() as other:
            (next_one,) = await receive(other)
            assert int(bodies([next_one])[0].split()[1]) >= 10
            await other.abandon_message(next_one)
        for one in received:
            await receiver.complete_message(one)


async def test_what_was_prefetched_and_not_taken_comes_again_after_its_lock(own_broker):
    async with Queue(own_broker) as orders:
        await orders.send(*numbered(5))
        async with orders.receiver(prefetch_count=5) as receiver:
            (taken,) = await receive(receiver)
            await receiver.complete_message(taken)
        own_broker.advance("PT5M")
        assert bodies(await orders.take(4)) == [f"number {number}" for number in range(1, 5)]
