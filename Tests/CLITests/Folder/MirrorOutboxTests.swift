import Testing

@testable import ThicketCLI

/// What a mirror reports about what it has stored.
@Suite("thicket mirror: what is reported as sent")
struct MirrorOutboxTests {
    private func box() -> MirrorOutbox {
        var box = MirrorOutbox()
        box.add("a", confirmed: "sent a", kept: "kept a")
        box.add("b", confirmed: "removed b", kept: "kept b")
        return box
    }

    @Test("a waiting change is not reported, and 'sent' is reported once, when the server has confirmed")
    func confirmed() {
        var box = box()
        #expect(box.report(waiting: ["a", "b"], refused: [], isOffline: false).isEmpty)
        #expect(box.report(waiting: ["a"], refused: [], isOffline: false) == ["removed b"])
        #expect(box.report(waiting: [], refused: [], isOffline: false) == ["sent a"])
        #expect(box.report(waiting: [], refused: [], isOffline: false).isEmpty && box.isEmpty)
    }

    @Test("without a connection 'kept' is reported once, and 'sent' all the same later")
    func kept() {
        var box = box()
        #expect(box.report(waiting: ["a", "b"], refused: [], isOffline: true) == ["kept a", "kept b"])
        #expect(box.report(waiting: ["a", "b"], refused: [], isOffline: true).isEmpty)
        #expect(box.report(waiting: [], refused: [], isOffline: false) == ["sent a", "removed b"])
    }

    @Test("a refused change is never reported as sent, neither now nor when it is given up")
    func refused() {
        var box = box()
        #expect(box.report(waiting: ["a", "b"], refused: ["a"], isOffline: false).isEmpty)
        #expect(box.report(waiting: ["b"], refused: [], isOffline: false).isEmpty)
        #expect(box.report(waiting: [], refused: [], isOffline: false) == ["removed b"])
    }
}
