package railbus;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.credential.TokenCredential;
import com.azure.core.http.HttpRequest;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import java.net.URI;
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
        // The client asks at port 443; a policy, which anybody may add, sends its requests to where the broker listens.
        HttpPipelinePolicy redirection = (context, next) -> {
            HttpRequest request = context.getHttpRequest();
            URI uri = URI.create(request.getUrl().toString());
            String query = uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery();
            request.setUrl("https://" + HOST + ":" + port + uri.getRawPath() + query);
            return next.process();
        };
        return new ServiceBusAdministrationClientBuilder()
            .credential(HOST, credential)
            .addPolicy(redirection)
            .buildClient();
    }
}
