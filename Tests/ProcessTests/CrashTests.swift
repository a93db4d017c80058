import Glibc
import Testing
import ThicketProcesses

@Suite("Crash", .serialized)
struct CrashTests {
    @Test("three kills under load lose no acknowledged change, apply none twice, and leave the data sound")
    func kills() throws {
        var settings: CrashTest.Settings = .init()
        settings.seed = UInt64.random(in: 0...UInt64.max)
        settings.keptChanges = 100
        let result: CrashTest.Result = try CrashTest(settings).run()
        #expect(result.faults.isEmpty, "seed \(settings.seed): \(result.faults.prefix(10))")
        #expect(result.lost == 0)
        #expect(result.rounds == 3 && result.acknowledged > 50, "\(result.summary)")
        #expect(result.backupsBegun == 3)
    }

    @Test("a disk that forgets what was synced is found out")
    func forgetfulDisk() {
        var settings: CrashTest.Settings = .init()
        settings.rounds = 2
        settings.afterCrash = { (folder: String) in
            unlink(folder + "/thicket.db-wal")
            unlink(folder + "/thicket.db-shm")
        }
        do {
            let result: CrashTest.Result = try CrashTest(settings).run()
            #expect(result.lost > 0, "\(result.summary)")
        } catch {
            #expect(error.description.contains("the server does not know its own cv"), "\(error)")
        }
    }
}
