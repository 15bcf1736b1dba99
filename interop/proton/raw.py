"""Messages as bytes, sent and received without Proton's codec, and taken apart into their sections."""

from proton import Handler

from support import connect

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS = 0x70, 0x71, 0x72
OF_THE_BROKER = (HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS)


def try_bytes(connection, sender, encoded):
    """Sends unsettled and awaits the outcome; returns the delivery."""
    delivery = sender.link.delivery(str(id(encoded)))
    sender.link.stream(encoded)
    sender.link.advance()
    connection.wait(lambda: delivery.settled, msg="sending bytes")
    return delivery


def send_bytes(connection, queue, encoded):
    sender = queue.sender()
    delivery = try_bytes(connection, sender, encoded)
    assert delivery.remote_state == delivery.ACCEPTED, delivery.remote.condition
    sender.close()


class RawReader(Handler):
    """Keeps the bytes of one delivery instead of decoding them."""

    def __init__(self):
        self.received = None

    def on_delivery(self, event):
        delivery = event.delivery
        if delivery.readable and not delivery.partial:
            self.received = event.receiver.recv(delivery.pending)
            delivery.update(delivery.ACCEPTED)
            delivery.settle()
            event.receiver.advance()


def receive_bytes(queue):
    reader = RawReader()
    connection = connect()
    link = connection.create_receiver(queue.name, credit=1, handler=reader)
    connection.wait(lambda: reader.received is not None, msg="receiving bytes")
    link.close()
    connection.close()
    return reader.received


def sections(encoded):
    """The code and the bytes of each section."""
    found = []
    while encoded:
        assert encoded[:2] == b"\x00\x53"
        length = section_length(encoded)
        found.append((encoded[2], encoded[:length]))
        encoded = encoded[length:]
    return found


def bare(encoded):
    """Leaves out header, delivery annotations and message annotations, the sections that are the broker's."""
    return b"".join(section for code, section in sections(encoded) if code not in OF_THE_BROKER)


def section_length(encoded):
    """The length of the section at the start: descriptor, format code, and what the code says. [AMQP 1.2]"""
    constructor, rest = encoded[3], encoded[4:]
    match constructor >> 4:
        case 0x4:
            return 4
        case 0xA | 0xC | 0xE:
            return 5 + rest[0]
        case 0xB | 0xD | 0xF:
            return 8 + int.from_bytes(rest[:4], "big")
        case fixed:
            return 4 + (1, 2, 4, 8, 16)[fixed - 5]
