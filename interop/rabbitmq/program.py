"""A program: a function that yields labels and the answers to them. What several programs need is here too."""

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def dead_letters(server, queue, **arguments):
    """A queue whose dead letters go to `p.dead` by a fanout exchange."""
    server.queue("p.dead")
    server.exchange("p.dlx", "fanout")
    server.bind("p.dlx", "p.dead")
    return server.queue(queue, x_dead_letter_exchange="p.dlx", **arguments)


def no_dead_letters(server, *queues):
    server.remove("/queues/p.dead", "/exchanges/p.dlx", *(f"/queues/{queue}" for queue in queues))


def bodies(messages):
    return [one["body"] if isinstance(one, dict) else one for one in messages]
