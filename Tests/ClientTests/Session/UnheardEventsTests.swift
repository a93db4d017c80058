import Testing
import ThicketProtocol
import ThicketSealed

@testable import ThicketClient

@Suite("Conflicts and alarms that nobody heard")
struct UnheardEventsTests {
    private func conflict(_ text: String) -> BucketEvent {
        .conflict(ConflictReport(key: "k", SealedConflict(path: [], losing: .string(text), winning: nil)))
    }

    private func count(_ events: [BucketEvent]) -> (told: Int, missed: Int) {
        var missed: Int = 0
        for case .overrun(let more) in events { missed += more }
        return (events.count { if case .overrun = $0 { false } else { true } }, missed)
    }

    @Test("are told once, in their order, and nothing else is held for anybody")
    func once() {
        var unheard: UnheardEvents = .init()
        for text: String in ["a", "b"] { unheard.add(conflict(text)) }
        unheard.add(.caughtUp)
        var told: [JSONValue?] = []
        for case .conflict(let report) in unheard.take() { told.append(report.losing) }
        #expect(told == ["a", "b"])
        #expect(unheard.take().isEmpty)
    }

    @Test("are bounded in number and in bytes, and how many were missed is told")
    func bounds() {
        var many: UnheardEvents = .init()
        for _ in 0..<StreamLimits.unheardMax + 3 { many.add(conflict("a")) }
        #expect(count(many.take()) == (StreamLimits.unheardMax, 3))
        var large: UnheardEvents = .init()
        let text: String = .init(repeating: "x", count: StreamLimits.unheardBytesMax / 2 - 100)
        for _ in 0..<4 { large.add(conflict(text)) }
        #expect(count(large.take()) == (2, 2))
        large.add(conflict("a"))
        #expect(count(large.take()) == (1, 0), "what was told makes room")
    }
}
