import Testing
import ThicketTestSupport

@testable import ThicketAuth

@Suite("T16: waiting after failed logins")
struct LoginGuardTests {
    @Test("five failures in a row cost no wait, then the wait doubles from a second to a quarter of an hour")
    func doubles() {
        var names = LoginGuard()
        var now: Double = 1_000
        var waits = [Int]()
        for _ in 0..<20 {
            while let seconds: Int = names.wait("ann", now: now) {
                waits.append(seconds)
                now += Double(seconds)
            }
            names.failed("ann", now: now)
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900, 900])
    }

    @Test("a success resets the count, and each name has its own count")
    func apart() {
        var names = LoginGuard()
        for _ in 0..<7 { names.failed("ann", now: 0) }
        #expect(names.wait("ann", now: 0) == 4)
        #expect(names.wait("bob", now: 0) == nil)
        names.succeeded("ann")
        #expect(names.wait("ann", now: 0) == nil)
        for _ in 0..<4 { names.failed("ann", now: 0) }
        #expect(names.wait("ann", now: 0) == nil)
    }

    @Test("a clock that goes back lengthens no wait")
    func clock() {
        var names = LoginGuard()
        for _ in 0..<6 { names.failed("ann", now: 1e9) }
        #expect(names.wait("ann", now: 0) == 2)
        for _ in 0..<100 { names.failed("ann", now: 1e9) }
        #expect(names.wait("ann", now: -1e300) == 900)
        #expect(names.wait("ann", now: 1e300) == nil)
    }

    @Test("the number of names is bounded, and a name that keeps failing is not forgotten")
    func bounded() {
        var names = LoginGuard()
        for round in 0..<3 * LoginGuard.namesMax {
            if round % 10_000 == 0 { for _ in 0..<5 { names.failed("target", now: 0) } }
            names.failed("other \(round)", now: 0)
        }
        #expect(names.wait("target", now: 0) == 900)
        #expect(names.count <= LoginGuard.namesMax)
    }
}
