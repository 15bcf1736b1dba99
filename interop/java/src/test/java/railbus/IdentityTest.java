package railbus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static railbus.Queue.message;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.credential.TokenCredential;
import com.azure.core.credential.TokenRequestContext;
import com.azure.core.exception.ClientAuthenticationException;
import com.azure.core.http.HttpRequest;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.identity.DefaultAzureCredential;
import com.azure.identity.DefaultAzureCredentialBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import java.net.URI;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/**
 * Programs without a connection string: DefaultAzureCredential finds the broker's development issuer by the variables
 * that {@code railbus identity env} prints, which {@code run} sets, and the clients take its tokens.
 */
class IdentityTest {
    private static final String HOST = System.getenv("RAILBUS_HOST");
    private static final String ENDPOINT = HOST + ":" + System.getenv("RAILBUS_PORT");

    private final DefaultAzureCredential credential = new DefaultAzureCredentialBuilder().build();

    private static ServiceBusClientBuilder builder(TokenCredential credential) {
        return new ServiceBusClientBuilder()
            .credential(HOST, credential)
            .customEndpointAddress("https://" + ENDPOINT);
    }

    @Test
    void aProgramWithoutAConnectionStringSendsAndReceives() {
        try (Queue queue = Queue.cleared("plain");
            ServiceBusSenderClient sender = builder(credential).sender().queueName(queue.name).buildClient();
            ServiceBusReceiverClient receiver = builder(credential).receiver().queueName(queue.name).buildClient()) {
            sender.sendMessage(message("without a key"));
            ServiceBusReceivedMessage received = Queue.receiveOne(receiver);
            assertEquals("without a key", received.getBody().toString());
            receiver.complete(received);
            assertEquals(0, queue.peek().size());
        }
    }

    @Test
    void aTokenForAnotherServiceIsRefused() {
        TokenCredential other = context ->
            credential.getToken(new TokenRequestContext().addScopes("https://vault.azure.net/.default"));
        AmqpRetryOptions once = new AmqpRetryOptions().setMaxRetries(0);
        try (Queue queue = Queue.cleared("plain");
            ServiceBusSenderClient sender = builder(other).retryOptions(once).sender().queueName(queue.name).buildClient()) {
            ServiceBusException refused =
                assertThrows(ServiceBusException.class, () -> sender.sendMessage(message("refused")));
            assertEquals(ServiceBusFailureReason.UNAUTHORIZED, refused.getReason());
            assertTrue(refused.getMessage().contains("InvalidAudience"), refused.getMessage());
            assertEquals(0, queue.peek().size());
        }
        assertThrows(ClientAuthenticationException.class, () -> administration(other).getQueue("java-plain"));
    }

    private static ServiceBusAdministrationClient administration(TokenCredential credential) {
        // The client asks at port 443; a policy, which anybody may add, sends its requests to where the broker listens.
        HttpPipelinePolicy port = (context, next) -> {
            HttpRequest request = context.getHttpRequest();
            URI uri = URI.create(request.getUrl().toString());
            String query = uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery();
            request.setUrl("https://" + ENDPOINT + uri.getRawPath() + query);
            return next.process();
        };
        return new ServiceBusAdministrationClientBuilder()
            .credential(HOST, credential)
            .addPolicy(port)
            .buildClient();
    }

    @Test
    void aProgramWithoutAConnectionStringAdministers() {
        ServiceBusAdministrationClient admin = administration(credential);
        String name = "java-identity-" + UUID.randomUUID().toString().substring(0, 13);
        admin.createQueue(name);
        assertEquals(name, admin.getQueue(name).getName());
        admin.deleteQueue(name);
    }
}
