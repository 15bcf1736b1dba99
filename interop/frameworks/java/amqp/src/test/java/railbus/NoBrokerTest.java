package railbus;

import static org.junit.jupiter.api.Assertions.assertThrows;

import io.vertx.amqp.AmqpClient;
import io.vertx.amqp.AmqpClientOptions;
import io.vertx.core.Vertx;
import java.util.concurrent.ExecutionException;
import org.apache.qpid.protonj2.client.Client;
import org.apache.qpid.protonj2.client.ConnectionOptions;
import org.junit.jupiter.api.Test;

/** A port where nothing listens. `setup` runs it, since it needs no broker. */
class NoBrokerTest {
    @Test
    void vertxSaysThatNothingListens() {
        Vertx vertx = Vertx.vertx();
        AmqpClientOptions options = new AmqpClientOptions().setHost("127.0.0.1").setPort(1);
        var connecting = AmqpClient.create(vertx, options).connect().toCompletionStage();
        assertThrows(ExecutionException.class, connecting.toCompletableFuture()::get);
        vertx.close();
    }

    @Test
    void protonSaysThatNothingListens() {
        ConnectionOptions options = new ConnectionOptions().reconnectEnabled(false);
        try (Client client = Client.create()) {
            assertThrows(
                    ExecutionException.class, () -> client.connect("127.0.0.1", 1, options).openFuture().get());
        } catch (Exception refused) {
            throw new AssertionError(refused);
        }
    }
}
