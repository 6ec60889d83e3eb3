import java.io.*;
import java.util.*;
import org.apache.paimon.fileindex.*;
import org.apache.paimon.fileindex.bitmap.BitmapFileIndex;
import org.apache.paimon.fileindex.bloomfilter.BloomFilterFileIndex;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.*;
import org.apache.paimon.types.*;

/**
 * Prints what Paimon 0.9 answers to random predicates over random indexes: one case a line.
 *
 * <p>java -cp paimon-python-java-bridge-0.9.0.jar Verdicts.java CASES SEED [large]
 */
public class Verdicts {
    static Random random;
    static RowType type = RowType.of(
        new DataType[]{DataTypes.INT(), DataTypes.BIGINT(), DataTypes.STRING(), DataTypes.SMALLINT(), DataTypes.INT()},
        new String[]{"a", "b", "s", "t", "u"});
    static PredicateBuilder builder = new PredicateBuilder(type);
    static int domain;

    static Object value(int column, int v) {
        switch (column) {
            case 1: return (long) v;
            case 2: return BinaryString.fromString("v" + v);
            case 3: return (short) v;
            default: return v;
        }
    }

        /** A predicate, which is written to {@code out} as JSON too. */
    static Predicate predicate(int depth, StringBuilder out) {
        int kind = random.nextInt(depth > 0 ? 10 : 7);
        if (kind >= 7) {
            int n = 2 + random.nextInt(3);
            boolean and = random.nextBoolean();
            List<Predicate> parts = new ArrayList<>();
            out.append("[\"").append(and ? "and" : "or").append("\"");
            for (int i = 0; i < n; i++) {
                out.append(",");
                parts.add(predicate(depth - 1, out));
            }
            out.append("]");
            return and ? PredicateBuilder.and(parts) : PredicateBuilder.or(parts);
        }
        int column = random.nextInt(5);
        String name = type.getFieldNames().get(column);
        int v = random.nextInt(domain);
        String written = column == 2 ? "\"v" + v + "\"" : "" + v;
        switch (kind) {
            case 0: case 1:
                out.append("[\"=\",\"" + name + "\"," + written + "]");
                return builder.equal(column, value(column, v));
            case 2:
                out.append("[\"!=\",\"" + name + "\"," + written + "]");
                return builder.notEqual(column, value(column, v));
            case 3:
                out.append("[\"<\",\"" + name + "\"," + written + "]");
                return builder.lessThan(column, value(column, v));
            case 4:
                if (random.nextBoolean()) {
                    out.append("[\"isnull\",\"" + name + "\"]");
                    return builder.isNull(column);
                }
                out.append("[\"isnotnull\",\"" + name + "\"]");
                return builder.isNotNull(column);
            default:
                int n = random.nextInt(4) == 0 ? 19 + random.nextInt(5) : 1 + random.nextInt(4);
                List<Object> values = new ArrayList<>();
                List<String> texts = new ArrayList<>();
                for (int i = 0; i < n; i++) {
                    int w = random.nextInt(n > 10 ? 4 * domain : domain + 2);
                    values.add(value(column, w));
                    texts.add(column == 2 ? "\"v" + w + "\"" : "" + w);
                }
                boolean in = random.nextInt(3) > 0;
                out.append("[\"" + (in ? "in" : "notin") + "\",\"" + name + "\",[" + String.join(",", texts) + "]]");
                return in ? builder.in(column, values) : builder.notIn(column, values);
        }
    }

    public static void main(String[] args) throws Exception {
        int cases = Integer.parseInt(args[0]);
        boolean large = args.length > 2;
        for (int c = 0; c < cases; c++) {
            random = new Random(Long.parseLong(args[1]) * 1000003 + c);
            domain = 2 + random.nextInt(8);
            int rows = large ? 60000 + random.nextInt(200000) : 1 + random.nextInt(12);
            Map<String, Map<String, byte[]>> indexes = new LinkedHashMap<>();
            StringBuilder data = new StringBuilder("{");
            for (int column = 0; column < 5; column++) {
                String name = type.getFieldNames().get(column);
                boolean nulls = random.nextInt(3) == 0, none = random.nextInt(8) == 0;
                int runs = 1 + random.nextInt(large ? 5000 : 2);
                boolean bitmap = column < 4 && random.nextInt(4) > 0, bloom = column < 4 && random.nextInt(2) > 0;
                DataType t = type.getTypeAt(column);
                Options options = new Options();
                options.setString("items", "" + (1 + random.nextInt(20)));
                FileIndexWriter w1 = new BitmapFileIndex(t, new Options()).createWriter();
                FileIndexWriter w2 = new BloomFilterFileIndex(t, options).createWriter();
                StringBuilder list = new StringBuilder();
                int v = 0;
                boolean any = false;
                for (int row = 0; row < rows; row++) {
                    if (row % runs == 0) v = nulls && random.nextInt(3) == 0 || none ? -1 : random.nextInt(domain);
                    Object o = v < 0 ? null : value(column, v);
                    any |= o != null;
                    w1.writeRecord(o);
                    w2.writeRecord(o);
                    if (!large) list.append(list.length() > 0 ? "," : "").append(v < 0 ? "null" : column == 2 ? "\"v" + v + "\"" : "" + v);
                }
                data.append(column > 0 ? "," : "").append("\"" + name + "\":[" + list + "]");
                Map<String, byte[]> of = new LinkedHashMap<>();
                if (bitmap) of.put("bitmap", w1.serializedBytes());
                // A null body is written as EMPTY.
                if (bloom) of.put("bloom-filter", any || random.nextBoolean() ? w2.serializedBytes() : null);
                if (!of.isEmpty()) indexes.put(name, of);
            }
            data.append("}");
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            FileIndexFormat.Writer writer = FileIndexFormat.createWriter(bytes);
            writer.writeColumnIndexes(indexes);
            writer.close();
            StringBuilder out = new StringBuilder("{\"file\":\"" + Base64.getEncoder().encodeToString(bytes.toByteArray()) + "\",\"rows\":" + data + ",\"asked\":[");
            for (int i = 0; i < 12; i++) {
                if (i > 0) out.append(",");
                out.append("[");
                Predicate p = predicate(large ? 2 : 3, out);
                TreeSet<String> seen = new TreeSet<>();
                for (int trial = 0; trial < (large ? 6 : 24); trial++) {
                    FileIndexPredicate q = new FileIndexPredicate(bytes.toByteArray(), type);
                    seen.add(q.testPredicate(p) ? "1" : "0");
                }
                out.append(",\"" + String.join("", seen) + "\"]");
            }
            System.out.println(out + "]}");
        }
    }
}
