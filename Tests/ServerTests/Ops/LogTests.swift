import Glibc
import Testing
import ThicketPlatform
import ThicketServer

@Suite("Log")
struct LogTests {
    private let sink = MemorySink()

    private func log(_ level: LogLevel = .info) -> Log {
        Log(level: level, sink: sink, idKey: [1, 2, 3]) { UnixTime(milliseconds: 1_769_903_999_042) }
    }

    @Test("a line is time, level, event, then the fields in order")
    func line() {
        log().info("session.closed", ["channels": 3, "reason": "idle", "duration": .duration(.milliseconds(31_204))])
        #expect(
            sink.lines == [
                "time=2026-01-31T23:59:59.042Z level=info event=session.closed channels=3 reason=idle duration=31.204s"
            ])
    }

    @Test("names are hashed with the key: equal names give equal hashes, and no name is readable")
    func hashed() {
        log().info("x", ["user": .hashed("ender@example.com")])
        log().info("x", ["user": .hashed("ender@example.com")])
        Log(sink: sink, idKey: [9]) { UnixTime(milliseconds: 1_769_903_999_042) }
            .info("x", ["user": .hashed("ender@example.com")])
        #expect(sink.lines[0] == sink.lines[1])
        #expect(sink.lines[0] != sink.lines[2])
        #expect(!sink.lines.joined().contains("ender"))
    }

    @Test(
        "text cannot break the line",
        arguments: [
            ("plain", "plain"), ("", "\"\""), ("two words", "\"two words\""), ("a=b", "\"a=b\""),
            ("line\nfeed", "\"line\\nfeed\""), ("say \"hi\"", "\"say \\\"hi\\\"\""), ("\u{1B}[31m", "\"\\x1b[31m\""),
            ("back\\slash", "\"back\\\\slash\""),
        ])
    func quoting(text: String, shown: String) {
        log().info("x", ["v": .text(text)])
        #expect(sink.lines.first?.hasSuffix("event=x v=\(shown)") == true)
    }

    @Test("a long value is cut, and a long line stays below the 4,096 bytes that a pipe writes in one piece")
    func long() {
        log().info("x", ["v": .text(String(repeating: "ü", count: 1_000))])
        #expect(sink.lines[0].utf8.count < 420)
        let long: LogValue = .text(String(repeating: "\n", count: 299))
        log().info("x", ["a": long, "b": long, "c": long, "d": long, "e": long, "f": long, "g": long, "h": long])
        #expect(sink.lines[1].utf8.count < 4_096)
    }

    @Test("lines below the level are not written")
    func levels() {
        log(.warning).info("x")
        log(.warning).debug("x")
        #expect(sink.lines.isEmpty)
        log(.warning).error("x")
        #expect(sink.lines.count == 1)
    }

    @Test("lines of many threads are never mixed")
    func threads() async {
        let path = "/tmp/thicket-log-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        let file: Int32 = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        defer {
            close(file)
            unlink(path)
        }
        let log = Log(sink: DescriptorSink(descriptor: file, dropped: Counter("x_total", "")), idKey: [])
        await withTaskGroup(of: Void.self) { (group: inout TaskGroup<Void>) in
            for task in 0..<4 {
                group.addTask { for _ in 0..<100 { log.info("tick", ["task": .int(task), "end": "end"]) } }
            }
        }
        lseek(file, 0, SEEK_SET)
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count: Int = read(file, &bytes, bytes.count)
        let lines: [ArraySlice<UInt8>] = bytes[..<max(0, count)].split(separator: 0x0A)
        #expect(lines.count == 400)
        #expect(lines.allSatisfy { $0.starts(with: "time=".utf8) && $0.suffix(7).elementsEqual("end=end".utf8) })
    }

    @Test("a slow log reader costs lines, not time, and the loss is logged")
    func slowReader() {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        defer { ends.forEach { (end: Int32) in close(end) } }
        let dropped = Counter("x_total", "")
        let log = Log(sink: DescriptorSink(descriptor: ends[1], dropped: dropped), idKey: [])
        for _ in 0..<2_000 { log.info("tick", ["pad": .text(String(repeating: "x", count: 200))]) }
        #expect(dropped.value > 0)
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        _ = read(ends[0], &bytes, bytes.count)
        log.info("after")
        let count: Int = read(ends[0], &bytes, bytes.count)
        let text: String = String(decoding: bytes[..<max(0, count)], as: UTF8.self)
        #expect(text.contains("event=log.dropped lines=\(dropped.value)\n"))
        #expect(text.contains("event=after"))
    }

    @Test(
        "times are written as RFC 3339",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"), (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func moments(milliseconds: Int64, text: String) {
        #expect(UnixTime(milliseconds: milliseconds).text == text)
    }
}
