package railbus;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.credential.TokenCredential;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import java.time.Duration;

/** Clients of programs without a connection string, within TLS. They do not try again. */
final class WithoutKey {
    private static final String HOST = System.getenv("RAILBUS_HOST");

    private WithoutKey() {
    }

    static ServiceBusClientBuilder builder(int port, TokenCredential credential) {
        return new ServiceBusClientBuilder()
            .credential(HOST, credential)
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(Duration.ofSeconds(30)))
            .customEndpointAddress("https://" + HOST + ":" + port);
    }

    static ServiceBusAdministrationClient administration(int port, TokenCredential credential) {
        return administrationBuilder(port, credential).buildClient();
    }

    static ServiceBusAdministrationClientBuilder administrationBuilder(int port, TokenCredential credential) {
        return Administration.at(HOST + ":" + port).credential(HOST, credential);
    }
}
