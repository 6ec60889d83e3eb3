/*
 * parquet-java's own verdict on the values of one column chunk, many in one call.
 * Compiled by Janino: raw types, no lambdas.
 */
package secure_bloom.spark.tests;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.column.values.bloomfilter.BloomFilter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;

public class BloomJudge {

    /**
     * One byte for each value: 1 "may be there", 0 "is not"; null when the chunk has no filter.
     * The values come as INT32, INT64: 8 bytes; FLOAT, DOUBLE: 8 bytes; others: length (4), bytes;
     * all big-endian.
     */
    public static byte[] verdicts(
            Configuration conf, String file, int rowGroup, String column, byte[] values, int count)
            throws IOException {
        ParquetFileReader reader = open(conf, file);
        try {
            ColumnChunkMetaData chunk = chunk(reader, rowGroup, column);
            BloomFilter filter = reader.getBloomFilterDataReader(rowGroup).readBloomFilter(chunk);
            if (filter == null) {
                return null;
            }
            PrimitiveTypeName type = chunk.getPrimitiveType().getPrimitiveTypeName();
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(values));
            byte[] verdicts = new byte[count];
            for (int i = 0; i < count; i++) {
                verdicts[i] = (byte) (filter.findHash(hash(filter, type, in)) ? 1 : 0);
            }
            return verdicts;
        } finally {
            reader.close();
        }
    }

    private static ParquetFileReader open(Configuration conf, String file) throws IOException {
        Path path = new Path(file);
        return ParquetFileReader.open(
                HadoopInputFile.fromPath(path, conf),
                // With the path, the builder asks the crypto factory for decryption properties.
                HadoopReadOptions.builder(conf, path).build());
    }

    private static ColumnChunkMetaData chunk(ParquetFileReader reader, int rowGroup, String column) {
        BlockMetaData block = (BlockMetaData) reader.getRowGroups().get(rowGroup);
        Iterator chunks = block.getColumns().iterator();
        while (chunks.hasNext()) {
            ColumnChunkMetaData chunk = (ColumnChunkMetaData) chunks.next();
            if (chunk.getPath().toDotString().equals(column)) {
                return chunk;
            }
        }
        throw new IllegalArgumentException("no column " + column);
    }

    private static long hash(BloomFilter filter, PrimitiveTypeName type, DataInputStream in)
            throws IOException {
        if (type == PrimitiveTypeName.INT32) {
            return filter.hash((int) in.readLong());
        }
        if (type == PrimitiveTypeName.INT64) {
            return filter.hash(in.readLong());
        }
        if (type == PrimitiveTypeName.FLOAT) {
            return filter.hash((float) in.readDouble());
        }
        if (type == PrimitiveTypeName.DOUBLE) {
            return filter.hash(in.readDouble());
        }
        byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        return filter.hash(Binary.fromConstantByteArray(bytes));
    }
}
