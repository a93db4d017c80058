import Testing
import ThicketBlocking
import ThicketSweep

/// Samples of the sweeps that `./dev soak --crash-sweep` runs whole.
@Suite("Crash and fault sweep", .blocking) struct SweepTests {
    @Test("a power cut at any call loses no acknowledged change, applies none twice, and leaves a sound store")
    func crashes() throws {
        var settings = CrashSweep.Settings()
        settings.seed = UInt64.random(in: 0..<1_000_000)
        (settings.changes, settings.stride, settings.threads) = (1_000, 149, 2)
        let result: CrashSweep.Result = try CrashSweep(settings).run()
        #expect(result.faults.prefix(5) == [], "seed \(settings.seed)")
        #expect(result.lost == 0 && result.duplicated == 0)
        #expect(result.points > 20, "\(result.summary)")
    }

    @Test("the sweep finds a disk that forgets what was synced")
    func forgetful() throws {
        var settings = CrashSweep.Settings()
        (settings.changes, settings.stride, settings.seed) = (200, 60, 7)
        settings.sabotage = { image in
            for name in image.keys where name.hasSuffix("-wal") { image[name] = nil }
        }
        let result: CrashSweep.Result = try CrashSweep(settings).run()
        #expect(result.lost > 0 || !result.faults.isEmpty)
    }

    @Test("a call that fails once refuses changes with 503 at most: no wrong answer, and service goes on")
    func faults() throws {
        var settings = FaultSweep.Settings()
        settings.seed = UInt64.random(in: 0..<1_000_000)
        (settings.changes, settings.stride, settings.threads) = (120, 97, 2)
        let result: FaultSweep.Result = try FaultSweep(settings).run()
        #expect(result.faults.prefix(5) == [], "seed \(settings.seed)")
        #expect(result.lost == 0 && result.duplicated == 0)
        #expect(result.faultsInjected > 20, "\(result.summary)")
    }

    @Test("a power cut at any call leaves each batch whole or absent, and each blob that was acknowledged")
    func treeCrashes() throws {
        var settings = TreeCrashSweep.Settings()
        settings.seed = UInt64.random(in: 0..<1_000_000)
        (settings.actions, settings.stride, settings.threads) = (60, 137, 2)
        let result = try TreeCrashSweep(settings).run()
        #expect(result.faults.prefix(5) == [], "seed \(settings.seed)")
        #expect(result.points > 10, "\(result.summary)")
    }

    @Test("the sweep over trees finds a disk that loses the files of blobs")
    func forgetfulFiles() throws {
        var settings = TreeCrashSweep.Settings()
        (settings.actions, settings.stride, settings.seed) = (40, 311, 1)
        settings.sabotage = { image in
            for name in image.keys where name.hasPrefix("blobs/") { image[name] = nil }
        }
        #expect(try !TreeCrashSweep(settings).run().faults.isEmpty)
    }

    @Test("a call that fails once leaves no batch and no blob half, and the repetition is made")
    func treeFaults() throws {
        var settings = TreeFaultSweep.Settings()
        settings.seed = UInt64.random(in: 0..<1_000_000)
        (settings.actions, settings.stride, settings.threads) = (40, 307, 2)
        let result = try TreeFaultSweep(settings).run()
        #expect(result.faults.prefix(5) == [], "seed \(settings.seed)")
        #expect(result.faultsInjected > 10, "\(result.summary)")
    }
}
