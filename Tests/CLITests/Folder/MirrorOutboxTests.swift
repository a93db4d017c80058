import Testing

@testable import ThicketCLI

/// What a mirror says about what it has stored.
@Suite("thicket mirror: what is said to be sent")
struct MirrorOutboxTests {
    private func box() -> MirrorOutbox {
        var box = MirrorOutbox()
        box.add("a", confirmed: "sent a", kept: "kept a")
        box.add("b", confirmed: "removed b", kept: "kept b")
        return box
    }

    @Test("nothing is said of what waits, and 'sent' once when the server has confirmed")
    func confirmed() {
        var box = box()
        #expect(box.report(waiting: ["a", "b"], refused: [], isOffline: false).isEmpty)
        #expect(box.report(waiting: ["a"], refused: [], isOffline: false) == ["removed b"])
        #expect(box.report(waiting: [], refused: [], isOffline: false) == ["sent a"])
        #expect(box.report(waiting: [], refused: [], isOffline: false).isEmpty && box.isEmpty)
    }

    @Test("without a connection 'kept' is said once, and 'sent' all the same later")
    func kept() {
        var box = box()
        #expect(box.report(waiting: ["a", "b"], refused: [], isOffline: true) == ["kept a", "kept b"])
        #expect(box.report(waiting: ["a", "b"], refused: [], isOffline: true).isEmpty)
        #expect(box.report(waiting: [], refused: [], isOffline: false) == ["sent a", "removed b"])
    }

    @Test("what is refused is never said to be sent, neither now nor when it is given up")
    func refused() {
        var box = box()
        #expect(box.report(waiting: ["a", "b"], refused: ["a"], isOffline: false).isEmpty)
        #expect(box.report(waiting: ["b"], refused: [], isOffline: false).isEmpty)
        #expect(box.report(waiting: [], refused: [], isOffline: false) == ["removed b"])
    }
}
