package railbus;

import com.azure.core.http.HttpRequest;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import java.net.URI;

/**
 * Administration clients. This SDK takes the port of https for granted; a policy, which anybody may add, sends its
 * requests to where the broker listens.
 */
final class Administration {
    private Administration() {
    }

    /** Builds clients by a connection string, which tells where the broker listens. */
    static ServiceBusAdministrationClientBuilder by(String connection) {
        return at(connection.replaceFirst(".*Endpoint=sb://([^/;]+).*", "$1")).connectionString(connection);
    }

    /** Builds clients that send their requests to a host and port. */
    static ServiceBusAdministrationClientBuilder at(String endpoint) {
        HttpPipelinePolicy redirection = (context, next) -> {
            HttpRequest request = context.getHttpRequest();
            URI uri = URI.create(request.getUrl().toString());
            String query = uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery();
            request.setUrl("https://" + endpoint + uri.getRawPath() + query);
            return next.process();
        };
        return new ServiceBusAdministrationClientBuilder().addPolicy(redirection);
    }
}
