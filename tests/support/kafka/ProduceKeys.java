import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer as Java programs have it, with no setting of its own: it sends a record under every
 * base64 key of standard input, and prints the partition that each record got.
 */
public final class ProduceKeys {
    public static void main(String[] arguments) throws Exception {
        String bootstrapServers = arguments[0];
        String topic = arguments[1];
        var serializer = new ByteArraySerializer();
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrapServers);
        try (var producer = new KafkaProducer<byte[], byte[]>(settings, serializer, serializer)) {
            var sent = new ArrayList<Future<RecordMetadata>>();
            var keys = new BufferedReader(new InputStreamReader(System.in));
            for (String line = keys.readLine(); line != null; line = keys.readLine()) {
                byte[] key = Base64.getDecoder().decode(line);
                sent.add(producer.send(new ProducerRecord<>(topic, key, new byte[0])));
            }
            for (Future<RecordMetadata> one : sent) {
                System.out.println(one.get().partition());
            }
        }
    }
}
