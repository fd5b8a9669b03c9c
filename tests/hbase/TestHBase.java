import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.util.JVMClusterUtil.RegionServerThread;
import org.apache.hadoop.hbase.zookeeper.MiniZooKeeperCluster;

/**
 * A real HBase for the tests: ZooKeeper, master and region server in one process, on the folders and ports of the site file,
 * with a control port beside them. One request is one line; the answer is one line, "ok ..." or "error ...".
 * The control port opens once tables can be used. Flushes and compactions run within the request, so that a test knows
 * what the files hold when it has its answer; the admin interface only asks for them.
 */
public class TestHBase {
    public static void main(String[] args) throws Exception {
        int controlPort = Integer.parseInt(args[0]);
        Configuration conf = HBaseConfiguration.create();
        MiniZooKeeperCluster zookeeper = new MiniZooKeeperCluster(conf);
        int port = conf.getInt(HConstants.ZOOKEEPER_CLIENT_PORT, 0);
        zookeeper.setDefaultClientPort(port);
        zookeeper.setTickTime(2000);
        int bound = zookeeper.startup(new File(conf.get(HConstants.ZOOKEEPER_DATA_DIR)), 1);
        if (bound != port) {
            throw new IllegalStateException("expected ZooKeeper's port " + port + " to be free, found it taken");
        }
        LocalHBaseCluster cluster = new LocalHBaseCluster(conf, 1, 1);
        cluster.startup();
        Connection connection = ConnectionFactory.createConnection(conf);
        Admin admin = connection.getAdmin();
        while (!cluster.getActiveMaster().isInitialized()) {
            Thread.sleep(50);
        }
        // Regions move and split only when a test says so.
        admin.balancerSwitch(false, true);
        try (ServerSocket server = new ServerSocket(controlPort, 50, InetAddress.getLoopbackAddress())) {
            while (true) {
                Socket socket = server.accept();
                Thread thread = new Thread(() -> serve(socket, cluster, admin));
                thread.setDaemon(true);
                thread.start();
            }
        }
    }

    static void serve(Socket socket, LocalHBaseCluster cluster, Admin admin) {
        try (socket;
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            PrintWriter out = new PrintWriter(socket.getOutputStream(), true, StandardCharsets.UTF_8)) {
            for (String line; (line = in.readLine()) != null;) {
                String answer;
                try {
                    answer = ("ok " + run(line.trim().split(" +"), cluster, admin)).trim();
                } catch (Exception e) {
                    answer = "error " + e.toString().replace('\n', ' ');
                }
                out.println(answer);
            }
        } catch (java.io.IOException e) {
            System.err.println("control connection: " + e);
        }
    }

    static String run(String[] words, LocalHBaseCluster cluster, Admin admin) throws Exception {
        switch (words[0]) {
            case "ping":
                return "";
            case "flush":
                for (HRegion region : regions(cluster, words[1])) {
                    region.flush(true);
                }
                return "";
            case "compact":
                for (HRegion region : regions(cluster, words[1])) {
                    region.flush(true);
                    region.compact(true);
                }
                return "";
            case "regions":
                return regions(cluster, words[1]).stream()
                    .map(r -> r.getRegionInfo().getStartKey())
                    .sorted(java.util.Arrays::compareUnsigned)
                    .map(k -> k.length == 0 ? "-" : HexFormat.of().formatHex(k))
                    .collect(Collectors.joining(" "));
            case "split": {
                TableName table = TableName.valueOf(words[1]);
                int before = regions(cluster, words[1]).size();
                admin.split(table, HexFormat.of().parseHex(words[2]));
                // In between none may be online.
                while (online(cluster, words[1]).size() <= before) {
                    Thread.sleep(20);
                }
                return "";
            }
            case "reopen":
                for (HRegion region : regions(cluster, words[1])) {
                    admin.unassign(region.getRegionInfo().getEncodedNameAsBytes(), false);
                    admin.assign(region.getRegionInfo().getEncodedNameAsBytes());
                }
                return "";
            case "drop":
                drop(admin, TableName.valueOf(words[1]));
                return "";
            case "drop-prefix":
                for (TableName table : admin.listTableNames()) {
                    if (table.getNameAsString().startsWith(words[1])) {
                        drop(admin, table);
                    }
                }
                return "";
            default:
                throw new IllegalArgumentException("unknown request " + words[0]);
        }
    }

    static void drop(Admin admin, TableName table) throws Exception {
        if (admin.isTableEnabled(table)) {
            admin.disableTable(table);
        }
        admin.deleteTable(table);
    }

    static List<HRegion> regions(LocalHBaseCluster cluster, String table) {
        List<HRegion> regions = online(cluster, table);
        if (regions.isEmpty()) {
            throw new IllegalArgumentException("no region of table " + table + " is online");
        }
        return regions;
    }

    static List<HRegion> online(LocalHBaseCluster cluster, String table) {
        List<HRegion> regions = new ArrayList<>();
        for (RegionServerThread server : cluster.getRegionServers()) {
            for (HRegion region : server.getRegionServer().getRegions(TableName.valueOf(table))) {
                regions.add(region);
            }
        }
        return regions;
    }
}
