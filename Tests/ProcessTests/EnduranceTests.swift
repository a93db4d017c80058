import Testing
import ThicketEndurance

@Suite("Endurance", .serialized)
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
}
