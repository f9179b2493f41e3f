import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Patterns of two parts in Flink CEP, one operator each, over events in memory.
 *
 * Arguments: events (count, then t and cell of each), patterns (count, then ordered, first cell, second cell, span of each), answers (pass seconds of
 * wall and of processor time, count, then pattern, start, end of each), passes. Everything is written as big-endian longs. Each pattern's operator is
 * given only the events of its two cells.
 */
public class FlinkPatterns {
    public static class Event {
        public long t;
        public int number;
        public int cell;

        public Event() {}
    }

    static long[] times;
    static int[] cells;
    static volatile long began;
    static volatile long beganCpu;
    /** By pattern: the latest start for each completing event. */
    static final List<Map<Integer, long[]>> found = new ArrayList<>();

    static long cpu() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    static Event event(long number) {
        if (number == 0) {
            began = System.nanoTime();
            beganCpu = cpu();
        }
        Event one = new Event();
        one.number = (int) number;
        one.t = times[one.number];
        one.cell = cells[one.number];
        return one;
    }

    /** What must hold between the first event and the one that completes the pattern. */
    static class Second extends IterativeCondition<Event> {
        final boolean ordered;
        final int a;
        final int b;

        Second(boolean ordered, int a, int b) {
            this.ordered = ordered;
            this.a = a;
            this.b = b;
        }

        @Override
        public boolean filter(Event second, Context<Event> context) throws Exception {
            if (ordered && second.cell != b) {
                return false;
            }
            Event first = context.getEventsForPattern("first").iterator().next();
            return ordered ? second.t > first.t : second.cell != first.cell;
        }
    }

    static void pattern(DataStream<Event> events, int number, boolean ordered, int a, int b, long span) {
        DataStream<Event> own = events.filter(one -> one.cell == a || one.cell == b);
        Pattern<Event, ?> pattern = Pattern.<Event>begin("first").where(SimpleCondition.of(one -> one.cell == a || !ordered && one.cell == b))
            .followedByAny("second").where(new Second(ordered, a, b)).within(Duration.ofMillis(span + 1));
        CEP.pattern(own, pattern).process(new PatternProcessFunction<Event, Integer>() {
            @Override
            public void processMatch(Map<String, List<Event>> match, Context context, Collector<Integer> out) {
                Event first = match.get("first").get(0);
                Event second = match.get("second").get(0);
                found.get(number).merge(second.number, new long[] {first.t, second.t}, (one, other) -> one[0] >= other[0] ? one : other);
            }
        }).returns(Integer.class).sinkTo(new DiscardingSink<>());
    }

    public static void main(String[] arguments) throws Exception {
        try (DataInputStream file = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(arguments[0]))))) {
            int count = (int) file.readLong();
            times = new long[count];
            cells = new int[count];
            for (int i = 0; i < count; i++) {
                times[i] = file.readLong();
                cells[i] = (int) file.readLong();
            }
        }
        List<long[]> patterns = new ArrayList<>();
        try (DataInputStream file = new DataInputStream(new BufferedInputStream(Files.newInputStream(Path.of(arguments[1]))))) {
            for (long left = file.readLong(); left > 0; left--) {
                patterns.add(new long[] {file.readLong(), file.readLong(), file.readLong(), file.readLong()});
            }
        }
        long wall = 0;
        long processor = 0;
        for (int pass = Integer.parseInt(arguments[3]); pass > 0; pass--) {
            found.clear();
            StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
            environment.setParallelism(1);
            environment.getConfig().enableObjectReuse();
            DataStream<Event> events = environment.fromSequence(0, times.length - 1).map(FlinkPatterns::event).returns(Event.class)
                .assignTimestampsAndWatermarks(WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((one, before) -> one.t));
            for (int i = 0; i < patterns.size(); i++) {
                long[] one = patterns.get(i);
                found.add(new HashMap<>());
                pattern(events, i, one[0] != 0, (int) one[1], (int) one[2], one[3]);
            }
            environment.execute();
            wall = System.nanoTime() - began;
            processor = cpu() - beganCpu;
        }
        try (DataOutputStream file = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(Path.of(arguments[2]))))) {
            file.writeLong(wall);
            file.writeLong(processor);
            file.writeLong(found.stream().mapToLong(Map::size).sum());
            for (int i = 0; i < found.size(); i++) {
                for (long[] span : found.get(i).values()) {
                    file.writeLong(i);
                    file.writeLong(span[0]);
                    file.writeLong(span[1]);
                }
            }
        }
    }
}
