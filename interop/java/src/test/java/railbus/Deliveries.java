package railbus;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static railbus.Queue.PATIENCE;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.reactivestreams.Subscription;
import reactor.core.Exceptions;
import reactor.core.publisher.BaseSubscriber;

/**
 * What an asynchronous receiver gets, one by one as it is asked for. The link stays open in between: the SDK closes that
 * of a stream which has enough, and a settlement that meets the closing fails.
 */
final class Deliveries extends BaseSubscriber<ServiceBusReceivedMessage> implements AutoCloseable {
    private final BlockingQueue<Supplier<ServiceBusReceivedMessage>> arrived = new LinkedBlockingQueue<>();

    @Override
    protected void hookOnSubscribe(Subscription subscription) {
        // Nothing is asked for yet.
    }

    @Override
    protected void hookOnNext(ServiceBusReceivedMessage message) {
        arrived.add(() -> message);
    }

    @Override
    protected void hookOnError(Throwable error) {
        arrived.add(() -> {
            throw Exceptions.propagate(error);
        });
    }

    /** The next message; throws what the stream ended with. */
    ServiceBusReceivedMessage next() {
        request(1);
        try {
            Supplier<ServiceBusReceivedMessage> next = arrived.poll(PATIENCE.toSeconds(), TimeUnit.SECONDS);
            assertNotNull(next, "a message is expected");
            return next.get();
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    @Override
    public void close() {
        cancel();
    }
}
