import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;

/** What benches/gateways.rs does, by HBase's own client: one number a line, in the order of the bench's columns. */
public class JavaClient {
    static final byte[] FAMILY = "a".getBytes(StandardCharsets.UTF_8);
    static final byte[] QUALIFIER = "q".getBytes(StandardCharsets.UTF_8);

    static byte[] key(int row) {
        return String.format("%08d", row).getBytes(StandardCharsets.UTF_8);
    }

    public static void main(String[] args) throws Exception {
        TableName name = TableName.valueOf(args[0]);
        int rows = Integer.parseInt(args[1]);
        int batch = Integer.parseInt(args[2]);
        int writers = Integer.parseInt(args[3]);
        int gets = Integer.parseInt(args[4]);
        int multi = Integer.parseInt(args[5]);
        byte[] value = new byte[100];
        Arrays.fill(value, (byte) 'v');
        try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
            Table table = connection.getTable(name)) {
            // Two rounds: the first one warms the client's code up.
            for (int round = 0; round < 2; round++) {
                ExecutorService pool = Executors.newFixedThreadPool(writers);
                long started = System.nanoTime();
                List<Future<?>> done = new ArrayList<>();
                for (int from = 0; from < rows; from += batch) {
                    int start = from;
                    int time = round + 1;
                    done.add(pool.submit(() -> {
                        List<Put> puts = new ArrayList<>();
                        for (int row = start; row < Math.min(rows, start + batch); row++) {
                            puts.add(new Put(key(row)).addColumn(FAMILY, QUALIFIER, time, value));
                        }
                        table.put(puts);
                        return null;
                    }));
                }
                for (Future<?> future : done) {
                    future.get();
                }
                double puts = rows / ((System.nanoTime() - started) / 1e9);
                pool.shutdown();

                long[] times = new long[gets];
                for (int i = 0; i < gets; i++) {
                    started = System.nanoTime();
                    table.get(new Get(key((int) ((i * 7919L) % rows))));
                    times[i] = System.nanoTime() - started;
                }
                Arrays.sort(times);

                long[] many = new long[gets / 10];
                for (int i = 0; i < many.length; i++) {
                    List<Get> list = new ArrayList<>();
                    for (int j = 0; j < multi; j++) {
                        list.add(new Get(key((int) ((i * 104729L + j * 7919L) % rows))));
                    }
                    started = System.nanoTime();
                    table.get(list);
                    many[i] = System.nanoTime() - started;
                }
                Arrays.sort(many);

                started = System.nanoTime();
                int seen = 0;
                try (ResultScanner scanner = table.getScanner(new Scan().setCaching(1000))) {
                    while (scanner.next() != null) {
                        seen++;
                    }
                }
                double scan = seen / ((System.nanoTime() - started) / 1e9);
                if (round == 1) {
                    System.out.println(puts);
                    System.out.println(times[gets / 2] / 1e6);
                    System.out.println(times[gets * 99 / 100] / 1e6);
                    System.out.println(many[many.length / 2] / 1e6);
                    System.out.println(scan);
                }
            }
        }
    }
}
