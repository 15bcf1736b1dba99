"""Selectors and browsing, as any AMQP 1.0 client asks for them: by a filter, and by distribution mode "copy"."""

import pytest

from proton.reactor import Copy, Selector
from proton.utils import LinkDetached

from support import message


def numbered(*numbers):
    return [message(f"message {n}", properties={"n": n}) for n in numbers]


def received_ns(receiver, count):
    """Receives exactly `count` messages and leaves them locked."""
    taken = [receiver.receive() for _ in range(count)]
    assert receiver.receive(patience=0.5) is None
    return taken, [one.message.properties["n"] for one in taken]


def test_a_receiver_with_a_selector_is_given_what_it_selects_and_the_rest_is_for_others(plain):
    plain.send(*numbered(1, 2, 3, 4, 5, 6))
    choosy = plain.receiver(Selector("n > 4 OR n = 2"))
    taken, ns = received_ns(choosy, 3)
    assert ns == [2, 5, 6]
    for one in taken:
        choosy.complete(one)
    assert [one.properties["n"] for one in plain.take(3)] == [1, 3, 4]
    assert plain.peek() == []


def test_a_selector_sees_header_and_properties(plain):
    plain.send(
        message("a", subject="red", priority=7),
        message("b", subject="blue", priority=2),
        message("c", subject="reddish"),
    )
    choosy = plain.receiver(Selector("JMSType LIKE 'red%' AND JMSPriority BETWEEN 5 AND 9"))
    one = choosy.receive()
    assert one.message.body == "a"
    assert choosy.receive(patience=0.5) is None
    choosy.complete(one)


def test_what_arrives_later_is_selected_as_it_arrives(plain):
    choosy = plain.receiver(Selector("n = 2"))
    choosy.link.link.flow(1)
    plain.send(*numbered(1, 2, 3))
    one = choosy.receive()
    assert one.message.properties["n"] == 2
    choosy.complete(one)


def test_an_abandoned_message_is_selected_by_what_it_has_become(plain):
    plain.send(*numbered(1, 1))
    holder = plain.receiver()
    first = holder.receive()
    choosy = plain.receiver(Selector("colour = 'green'"))
    choosy.link.link.flow(1)
    holder.abandon(first, {"colour": "green"})
    again = choosy.receive()
    assert again.number == first.number
    choosy.complete(again)


def test_dead_letters_are_selected_by_their_reason(plain):
    plain.send(*numbered(1, 2))
    holder = plain.receiver()
    for reason in ("one", "other"):
        holder.reject(holder.receive(), DeadLetterReason=reason)
    choosy = plain.dead_letter.receiver(Selector("DeadLetterReason = 'other'"))
    taken, ns = received_ns(choosy, 1)
    assert ns == [2]
    choosy.complete(taken[0])


@pytest.mark.parametrize(
    ("selector", "reason"),
    [("n = ", "at character"), ("n LIKE 5", "at character 8"), ("n = '" + "x" * 1100 + "'", "1024")],
)
def test_a_bad_selector_is_refused_with_the_reason(plain, selector, reason):
    with pytest.raises(LinkDetached, match=reason) as raised:
        plain.receiver(Selector(selector))
    assert raised.value.condition == "amqp:invalid-field"
    plain.send(message("the same connection still serves"))


def test_a_browser_is_shown_everything_and_takes_nothing(plain):
    plain.send(*numbered(1, 2, 3))
    holder = plain.receiver()
    held = holder.receive()
    browser = plain.receiver(Copy())
    shown, ns = received_ns(browser, 3)
    assert ns == [1, 2, 3]
    assert all(copy.delivery.settled for copy in shown)
    plain.send(*numbered(4))
    assert browser.receive().message.properties["n"] == 4
    holder.complete(held)
    again = [plain_message.properties["n"] for plain_message in plain.take(3)]
    assert again == [2, 3, 4]
    assert plain.dead_letter.peek() == []


def test_a_browser_may_have_a_selector(plain):
    plain.send(*numbered(1, 2, 3, 4))
    browser = plain.receiver(Copy(), Selector("n > 2"))
    _, ns = received_ns(browser, 2)
    assert ns == [3, 4]
    assert len(plain.peek()) == 4
