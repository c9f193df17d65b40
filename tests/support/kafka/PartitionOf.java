import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Reads a Base64 key from each line. Prints its partition; the argument is the partition count. */
public final class PartitionOf {
    public static void main(String[] arguments) throws Exception {
        int partitionCount = Integer.parseInt(arguments[0]);
        var keys = new BufferedReader(new InputStreamReader(System.in));
        for (String line = keys.readLine(); line != null; line = keys.readLine()) {
            byte[] key = Base64.getDecoder().decode(line);
            System.out.println(BuiltInPartitioner.partitionForKey(key, partitionCount));
        }
    }
}
