// Makes the fixtures beside this file with Kafka's own Java client, or reads
// batches made elsewhere with it. With the client's jar and those that it
// depends on in lib/:
//
//   java -cp 'lib/*' Generate.java generate DIR
//   java -cp 'lib/*' Generate.java check FILE...
//
// The fixtures were made with version 4.3.1. The messages are those of
// sampleMessage in the tests.

import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Utils;

public class Generate {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    public static void main(String[] args) throws Exception {
        if (args[0].equals("generate")) {
            for (String codec : CODECS) generate(Path.of(args[1], codec + ".batch"), codec);
            murmur(Path.of(args[1], "murmur2.txt"));
            return;
        }
        for (int i = 1; i < args.length; i++) check(Path.of(args[i]));
    }

    static byte[] utf8(String s) { return s.getBytes(StandardCharsets.UTF_8); }

    static long timestamp(int i) { return 1_700_000_000_000L + (i * 37) % 101 - 50; }

    static byte[] key(int i) {
        switch (i % 5) {
            case 0: return null;
            case 1: return new byte[0];
            default: return utf8("key-" + i);
        }
    }

    static byte[] value(int i) {
        switch (i % 7) {
            case 0: return null;
            case 1: return new byte[0];
            default: return utf8(("message " + i + " ").repeat(i % 50));
        }
    }

    static Header[] headers(int i) {
        Header[] h = new Header[i % 3];
        for (int j = 0; j < h.length; j++) {
            h[j] = new RecordHeader("hé" + j, j == 1 ? null : utf8("v" + i));
        }
        return h;
    }

    static void generate(Path out, String codec) throws Exception {
        int n = codec.equals("none") ? 40 : 600;
        var builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 20), (byte) 2, Compression.of(codec).build(),
            TimestampType.CREATE_TIME, 1000, -1, 42, (short) 3, 11, false, 7);
        for (int i = 0; i < n; i++) builder.append(timestamp(i), key(i), value(i), headers(i));
        ByteBuffer b = builder.build().buffer();
        byte[] bytes = new byte[b.remaining()];
        b.get(bytes);
        Files.write(out, bytes);
    }

    static void check(Path file) throws Exception {
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file))).batches()) {
            batch.ensureValid();
            int i = 0;
            for (Record r : batch) {
                r.ensureValid();
                boolean same = r.offset() == batch.baseOffset() + i && r.timestamp() == timestamp(i)
                    && same(r.key(), key(i)) && same(r.value(), value(i)) && Arrays.equals(r.headers(), headers(i));
                if (!same) throw new Exception(file + ": message " + i + " differs");
                i++;
            }
            System.out.println(file + ": " + batch.compressionType() + ", " + i + " messages, offsets " + batch.baseOffset()
                + " to " + batch.lastOffset() + ", producer " + batch.producerId() + "/" + batch.producerEpoch()
                + ", sequences " + batch.baseSequence() + " to " + batch.lastSequence() + ", max timestamp " + batch.maxTimestamp());
        }
    }

    static boolean same(ByteBuffer got, byte[] want) {
        return want == null ? got == null : got != null && got.equals(ByteBuffer.wrap(want));
    }

    static void murmur(Path out) throws Exception {
        Random random = new Random(1);
        try (PrintStream p = new PrintStream(Files.newOutputStream(out))) {
            p.println("# key in hexadecimal, murmur2, partition of 64, partition of 1000000");
            for (int i = 0; i < 200; i++) {
                byte[] key = new byte[i % 40];
                random.nextBytes(key);
                p.printf("%s %d %d %d%n", HexFormat.of().formatHex(key), Integer.toUnsignedLong(Utils.murmur2(key)),
                    BuiltInPartitioner.partitionForKey(key, 64), BuiltInPartitioner.partitionForKey(key, 1_000_000));
            }
        }
    }
}
