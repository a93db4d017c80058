import Testing
import ThicketBlocking

@testable import ThicketEndurance

@Suite("Endurance", .blocking, .serialized)
struct EnduranceTests {
    @Test("five seconds of mixed load with random restarts and kills leave all clients with the same objects")
    func miniature() async {
        var settings = Endurance.Settings()
        settings.seconds = 5
        settings.users = 1
        settings.seed = UInt64.random(in: 0...UInt64.max)
        let faults = await Endurance(settings).run()
        #expect(faults.isEmpty, "seed \(settings.seed): \(faults.prefix(10))")
    }

    @Test("the last half of a long run has no restart; a short run is restarted nearly to its end")
    func runs() {
        var settings = Endurance.Settings()
        settings.seconds = 7_200
        #expect(settings.lastRestart == 3_600)
        #expect(settings.restartSeconds * 2 < settings.lastRestart, "an end and a kill before it")
        settings.seconds = 1_800
        #expect(settings.lastRestart == 900 && settings.restartSeconds * 2 < 900)
        settings.seconds = 1_799
        #expect(settings.lastRestart > 1_740)
    }

    @Test("growth in a long run is reported; filling up in a short run is not")
    func bounds() {
        let mib = 1 << 20
        // Measured values: two hours, and a database that once grew without bound.
        #expect(EnduranceBound.memory.admits(44 * mib, after: 41 * mib, seconds: 7_200))
        #expect(!EnduranceBound.memory.admits(56 * mib, after: 41 * mib, seconds: 7_200))
        #expect(EnduranceBound.database.admits(5 * mib, after: 4 * mib, seconds: 7_200))
        #expect(!EnduranceBound.database.admits(Int(6.6 * 1_048_576), after: Int(3.4 * 1_048_576), seconds: 1_800))
        #expect(EnduranceBound.database.admits(Int(6.6 * 1_048_576), after: Int(3.4 * 1_048_576), seconds: 600))
        #expect(!EnduranceBound.descriptors.admits(60, after: 41, seconds: 7_200))
    }
}
