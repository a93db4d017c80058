import Testing
@testable import ThicketNet
@testable import ThicketScheduling

@testable import ThicketServer

/// How long the loop looks for the shard's answer without sleeping.
@Suite("Watching for an answer")
struct BusyPollWindowTests {
    private static let begun: Int64 = 1_000_000_000

    private func watch(cores: Int = 2) -> BusyPollWindow {
        var watch: BusyPollWindow = .init(cores: cores)
        watch.begin(now: Self.begun)
        return watch
    }

    @Test("it ends a fifth of a millisecond after the changes were handed over, however often it is asked")
    func bounded() {
        let watch: BusyPollWindow = watch()
        for changes: Int in [1, 2, 4, 1] { #expect(watch.end(changes: changes) == Self.begun + 200_000) }
    }

    @Test("it begins anew with the next group")
    func nextGroup() {
        var watch: BusyPollWindow = watch()
        watch.begin(now: Self.begun + 150_000)
        #expect(watch.end(changes: 1) == Self.begun + 350_000)
    }

    @Test("nothing is expected soon of no change, nor of many", arguments: [0, 5, 64])
    func neither(changes: Int) {
        #expect(watch().end(changes: changes) == nil)
    }

    @Test("where there is one core only, it would keep it from whoever works on the answer")
    func oneCore() {
        #expect(watch(cores: 1).end(changes: 1) == nil)
        #expect(watch(cores: 0).end(changes: 1) != nil, "a kernel that does not tell is no kernel with one core")
    }

    @Test("before anything was handed over it is over")
    func nothing() {
        let end: Int64? = BusyPollWindow(cores: 2).end(changes: 1)
        #expect(end.map { $0 < Self.begun } == true)
    }

    @Test("the loop knows how many cores it may use")
    func cores() {
        #expect(EventLoop.cores >= 1)
    }
}
