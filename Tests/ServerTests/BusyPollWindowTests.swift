import Testing
@testable import ThicketNet
@testable import ThicketScheduling

@testable import ThicketServer

/// How long the loop polls for the shard's answer before it sleeps.
@Suite("Polling for the shard's answer")
struct BusyPollWindowTests {
    private static let begun: Int64 = 1_000_000_000

    private func watch(cores: Int = 2) -> BusyPollWindow {
        var watch = BusyPollWindow(cores: cores)
        watch.begin(now: Self.begun)
        return watch
    }

    @Test("the window ends 200 µs after the changes were handed over, however often it is asked")
    func bounded() {
        let watch: BusyPollWindow = watch()
        for changes: Int in [1, 2, 4, 1] { #expect(watch.end(changes: changes) == Self.begun + 200_000) }
    }

    @Test("the next group opens the window again")
    func nextGroup() {
        var watch: BusyPollWindow = watch()
        watch.begin(now: Self.begun + 150_000)
        #expect(watch.end(changes: 1) == Self.begun + 350_000)
    }

    @Test("the loop does not poll while no change or more than four are in progress", arguments: [0, 5, 64])
    func neither(changes: Int) {
        #expect(watch().end(changes: changes) == nil)
    }

    @Test("with a single core the loop does not poll; with an unknown number it does")
    func oneCore() {
        #expect(watch(cores: 1).end(changes: 1) == nil)
        #expect(watch(cores: 0).end(changes: 1) != nil, "0 is an unknown number of cores, not one core")
    }

    @Test("before any change was handed over the window is over")
    func nothing() {
        let end: Int64? = BusyPollWindow(cores: 2).end(changes: 1)
        #expect(end.map { $0 < Self.begun } == true)
    }

    @Test("the loop knows how many cores it may use")
    func cores() {
        #expect(EventLoop.cores >= 1)
    }
}
