import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BillingMode;
import software.amazon.awssdk.services.dynamodb.model.KeyType;
import software.amazon.awssdk.services.dynamodb.model.ScalarAttributeType;

class RetriesTest {
    private final HttpClient http = HttpClient.newHttpClient();
    private final String admin = System.getenv("ADMIN");

    @Test
    void noTransactionIsDoneTwice() throws Exception {
        try (var dynamodb = DynamoDbClient.builder()
                .endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_DYNAMODB")))
                .region(Region.US_EAST_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("any", "any")))
                .build()) {
            dynamodb.createTable(table -> table.tableName("Thread")
                    .keySchema(key -> key.attributeName("Id").keyType(KeyType.HASH))
                    .attributeDefinitions(key -> key.attributeName("Id").attributeType(ScalarAttributeType.S))
                    .billingMode(BillingMode.PAY_PER_REQUEST));
            var key = Map.of("Id", AttributeValue.fromS("1"));
            var one = Map.of(":one", AttributeValue.fromN("1"));
            int visits = 0;
            for (String fault : System.getenv("FAULTS").split(" ")) {
                add(fault);
                dynamodb.transactWriteItems(request -> request.transactItems(each -> each.update(update -> update
                        .tableName("Thread")
                        .key(key)
                        .updateExpression("ADD Visits :one")
                        .expressionAttributeValues(one))));
                visits++;
                var item = dynamodb.getItem(get -> get.tableName("Thread").key(key).consistentRead(true)).item();
                assertEquals(String.valueOf(visits), item.get("Visits").n(), fault);
            }
        }
    }

    private void add(String fault) throws Exception {
        var rule = "{\"fault\": \"" + fault + "\", \"operation\": \"TransactWriteItems\", \"next\": 1}";
        var request = HttpRequest.newBuilder(URI.create(admin + "/faults"))
                .header("Content-Type", "application/json")
                .header("X-Dynactor-Admin", "1")
                .POST(HttpRequest.BodyPublishers.ofString(rule))
                .build();
        assertEquals(201, http.send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
    }
}
