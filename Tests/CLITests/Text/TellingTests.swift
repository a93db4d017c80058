import Testing
import ThicketProtocol

@testable import ThicketCLI
@testable import ThicketClient

@Suite("Reports of sealed buckets, in words")
struct TellingTests {
    private func lines(_ event: BucketEvent) -> [String] {
        OpenBucket.lines(event) + OpenBucket.lines(event, in: "diary")
    }

    @Test("the value that gave way is shown whole, with its place")
    func conflicts() {
        let value = BucketEvent.conflict(
            ConflictReport(key: "today", path: ["a", "b"], losing: ["t": "lost"], winning: nil))
        let text = #"two edits met at a.b, and this gave way: {"t":"lost"}"#
        #expect(lines(value) == ["today: " + text, "diary/today: " + text])
        let deletion = BucketEvent.conflict(ConflictReport(key: "today", path: [], losing: nil, winning: 1))
        #expect(lines(deletion).first == "today: two edits met, and a deletion gave way")
    }

    @Test("alarms name the object, or only the bucket if they are about all of it; nothing else is reported")
    func alarms() {
        #expect(
            lines(.integrity(IntegrityReport(key: "today", .removed))) == [
                "today: the object is missing on the server, and no device has deleted it",
                "diary/today: the object is missing on the server, and no device has deleted it",
            ])
        #expect(
            lines(.integrity(IntegrityReport(modeChanged: "another mode"))) == ["another mode", "diary: another mode"])
        #expect(lines(.overrun(missed: 3)).last == "diary: 3 more conflicts and alarms came too fast to be shown")
        #expect(lines(.caughtUp).isEmpty)
    }
}
