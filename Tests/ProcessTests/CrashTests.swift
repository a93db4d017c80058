import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

@Suite("Crash", .blocking, .serialized)
struct CrashTests {
    @Test("three kills under load lose no acknowledged change, apply none twice, and leave the data sound")
    func kills() throws {
        var settings = CrashTest.Settings()
        settings.seed = UInt64.random(in: 0...UInt64.max)
        settings.keptChanges = 100
        let result = try CrashTest(settings).run()
        #expect(result.faults.isEmpty, "seed \(settings.seed): \(result.faults.prefix(10))")
        #expect(result.lost == 0)
        #expect(result.rounds == 3 && result.acknowledged > 50, "\(result.summary)")
        #expect(result.backupsBegun == 3)
    }

    @Test("many rounds in which an event never happened are reported as no proof of it")
    func unproven() {
        var result = CrashTest.Result()
        (result.rounds, result.acknowledged) = (100, 1_000)
        #expect(CrashTest.unproven(result).count == 4)
        (result.backups, result.cut, result.segments, result.foundBefore) = (1, 1, 1, 1)
        #expect(CrashTest.unproven(result).isEmpty)
        result.segments = 0
        #expect(CrashTest.unproven(result) == ["there is no segment in the store: that it goes well is not proven"])
        result.rounds = 3
        #expect(CrashTest.unproven(result).isEmpty, "a few rounds may miss something")
    }

    @Test("a disk that forgets synced data is detected")
    func forgetfulDisk() {
        var settings = CrashTest.Settings()
        settings.rounds = 2
        settings.afterCrash = { (folder: String) in
            unlink(folder + "/thicket.db-wal")
            unlink(folder + "/thicket.db-shm")
        }
        do {
            let result = try CrashTest(settings).run()
            #expect(result.lost > 0, "\(result.summary)")
        } catch {
            #expect(error.description.contains("the server does not know its own cv"), "\(error)")
        }
    }
}
