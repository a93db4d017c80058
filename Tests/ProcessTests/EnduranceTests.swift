import Testing
import ThicketBlocking

@testable import ThicketEndurance

@Suite("Endurance", .blocking, .serialized)
struct EnduranceTests {
    @Test("five seconds of mixed load, with restarts and kills as they fall, leave everybody with the same")
    func miniature() async {
        var settings: Endurance.Settings = .init()
        settings.seconds = 5
        settings.users = 1
        settings.seed = UInt64.random(in: 0...UInt64.max)
        let faults: [String] = await Endurance(settings).run()
        #expect(faults.isEmpty, "seed \(settings.seed): \(faults.prefix(10))")
    }

    @Test("the last half of a long run is one life of the server; a short one is restarted nearly to its end")
    func lives() {
        var settings: Endurance.Settings = .init()
        settings.seconds = 7_200
        #expect(settings.lastRestart == 3_600)
        #expect(settings.lifeSeconds * 2 < settings.lastRestart, "an end and a kill before it")
        settings.seconds = 1_800
        #expect(settings.lastRestart == 900 && settings.lifeSeconds * 2 < 900)
        settings.seconds = 1_799
        #expect(settings.lastRestart > 1_740)
    }

    @Test("what grows in a long run is told; what fills up in a short one is not")
    func bounds() {
        let mib: Int = 1 << 20
        // As it was measured: two hours, and a database that once grew without end.
        #expect(EnduranceBound.memory.admits(44 * mib, after: 41 * mib, seconds: 7_200))
        #expect(!EnduranceBound.memory.admits(56 * mib, after: 41 * mib, seconds: 7_200))
        #expect(EnduranceBound.database.admits(5 * mib, after: 4 * mib, seconds: 7_200))
        #expect(!EnduranceBound.database.admits(Int(6.6 * 1_048_576), after: Int(3.4 * 1_048_576), seconds: 1_800))
        #expect(EnduranceBound.database.admits(Int(6.6 * 1_048_576), after: Int(3.4 * 1_048_576), seconds: 600))
        #expect(!EnduranceBound.descriptors.admits(60, after: 41, seconds: 7_200))
    }
}
