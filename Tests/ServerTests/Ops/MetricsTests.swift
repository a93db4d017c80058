import Testing
import ThicketPlatform
import ThicketServer

@Suite("Metrics")
struct MetricsTests {
    @Test("a counter, a gauge and a labelled counter are shown with their help and type")
    func page() {
        let metrics = Metrics()
        metrics.changesApplied.add(3)
        metrics.net.connections.add(5)
        metrics.net.connections.subtract(2)
        metrics.changesRefused.add(1, .invalidDiff)
        let page: String = metrics.render()
        #expect(page.contains("# TYPE thicket_changes_applied_total counter\nthicket_changes_applied_total 3\n"))
        #expect(page.contains("# TYPE thicket_connections gauge\nthicket_connections 3\n"))
        #expect(page.contains("thicket_changes_refused_total{code=\"440\"} 1\n"))
        #expect(page.contains("thicket_changes_refused_total{code=\"405\"} 0\n"))
        #expect(page.contains("thicket_build_info{version=\"\(ThicketServer.version)\"} 1\n"))
        #expect(page.contains("\nprocess_resident_memory_bytes "))
    }

    @Test("every property of Metrics is on the page once, under a name of the required form")
    func names() {
        let metrics = Metrics()
        let names: [String] = metrics.instruments.map { (instrument: any Instrument) in instrument.name }
        let properties = [metrics as Any, metrics.net].flatMap { Mirror(reflecting: $0).children }
        // `net` itself and what the loop calls for a limit are not instruments.
        #expect(names.count == properties.count - 2)
        #expect(Set(names).count == names.count)
        for instrument in metrics.instruments {
            #expect(instrument.name.hasPrefix("thicket_"), "\(instrument.name)")
            #expect((instrument.kind == "counter") == instrument.name.hasSuffix("_total"), "\(instrument.name)")
            #expect(instrument.name.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x5F })
            #expect(!instrument.help.contains("\n") && instrument.help.hasSuffix("."))
        }
    }

    @Test("every sample line is a name, optional labels and a number")
    func format() throws {
        let metrics = Metrics()
        metrics.commitSeconds.observe(.milliseconds(3))
        for line in metrics.render().split(separator: "\n") where !line.hasPrefix("#") {
            let words: [Substring] = line.split(separator: " ")
            #expect(words.count == 2, "\(line)")
            #expect(words.count == 2 && Double(words[1]) != nil, "\(line)")
        }
    }

    @Test("a histogram counts a value in its bucket and in all above, upper bounds included")
    func histogram() {
        let histogram = Histogram("thicket_test_seconds", bounds: [1_000, 2_500], scale: 0.000_001, "Help.")
        for value: Int in [1, 1_000, 1_001, 9_000] { histogram.observe(value) }
        var text = ""
        histogram.renderSamples(to: &text)
        #expect(
            text == """
                thicket_test_seconds_bucket{le="0.001"} 2
                thicket_test_seconds_bucket{le="0.0025"} 3
                thicket_test_seconds_bucket{le="+Inf"} 4
                thicket_test_seconds_sum 0.011002
                thicket_test_seconds_count 4

                """)
    }

    @Test("counting from many threads loses nothing")
    func threads() async {
        let counter = Counter("thicket_test_total", "Help.")
        await withTaskGroup(of: Void.self) { (group: inout TaskGroup<Void>) in
            for _ in 0..<8 { group.addTask { for _ in 0..<1_000 { counter.add() } } }
        }
        #expect(counter.value == 8_000)
    }

    @Test("readiness follows commits, and stopping is final")
    func health() {
        let health = Health()
        #expect(!health.isReady)
        health.canCommit()
        #expect(health.isReady && health.report.condition == .ready)
        health.cannotCommit("the disk is full")
        #expect(!health.isReady && health.statusLine == "cannot_commit: the disk is full\n")
        health.canCommit()
        #expect(health.isReady)
        health.stop()
        health.canCommit()
        #expect(!health.isReady && health.report.condition == .stopping)
    }
}
