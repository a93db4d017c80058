import Testing
import ThicketBlocking
import ThicketProcesses

@testable import ThicketAcceptance

/// Scenarios of trees with a real server and real clients, in small; `./dev soak --tree-scenarios` has the full sizes.
@Suite("Tree scenarios", .blocking, .serialized)
struct TreeScenarioTests {
    private let seed = UInt64.random(in: 0...UInt64.max >> 1)

    @Test(
        "a content goes up and down over three kills each way: at most one part passes again after each")
    func kills() throws {
        var settings = TransferKills.Settings()
        (settings.mebibytes, settings.kills, settings.seed) = (24, 3, seed)
        var scenario = try TransferKills(settings)
        let result = try scenario.run()
        #expect(result.faults.isEmpty, "seed \(seed): \(result.faults)")
    }

    @Test(
        "three devices read, write, move and remove at once and are killed: one tree, and no node is lost")
    func devices() async throws { try await storm(.all) }

    @Test("three devices want few names at once, by creations, moves and new names: one tree, and no node is lost")
    func names() async throws { try await storm(.names) }

    private func storm(_ mix: DeviceWork.Mix) async throws {
        var settings = DeviceStorm.Settings()
        (settings.mix, settings.seed, settings.steps, settings.rounds) = (mix, seed, 20, 2)
        var scenario = try DeviceStorm(settings)
        let result = try await scenario.run()
        #expect(result.faults.isEmpty, "seed \(seed): \(result.faults)")
    }

    @Test("a new device shows 200 containers after one request for lists, and opens one of them with one more")
    func screen() async throws {
        var settings = FirstScreen.Settings()
        settings.children = 3
        let result = try await FirstScreen(settings).run()
        #expect(result.faults.isEmpty, "\(result.faults)")
        #expect(result.summary.contains(", 1 requests for lists, "), "\(result.summary)")
    }

    @Test("a server restored from yesterday: devices name what it lost and send it again, and no disk has a clear text")
    func rollback() throws {
        var scenario = try Rollback()
        let result = try scenario.run()
        #expect(result.faults.isEmpty, "\(result.faults)")
    }

    // MARK: - The measure itself

    private func pass(_ text: String, _ reader: inout RequestReader, _ record: inout PassageRecord) {
        // In pieces, as a connection gives them.
        for start in stride(from: 0, to: text.utf8.count, by: 7) {
            reader.read(Array(text.utf8)[start..<min(text.utf8.count, start + 7)], into: &record)
        }
    }

    @Test("bytes of a part and of a range that pass a second time are counted, to the interruption before them")
    func repeatedBytes() {
        var (record, first, second) = (PassageRecord(), RequestReader(), RequestReader())
        let head = "PUT /1/notes/blob/id/2 HTTP/1.1\r\nContent-Length: 10\r\n\r\n"
        pass(head + "0123", &first, &record)
        #expect(record.fresh("PUT") == 4 && record.repeated("PUT").isEmpty && record.partsTwice == 0)
        record.interruptions = 1
        pass(head + "0123456789", &second, &record)
        #expect(record.fresh("PUT") == 10 && record.repeated("PUT") == [1: 4] && record.partsTwice == 0)
        record.interruptions = 2
        pass(head + "0123456789" + "GET /1/notes/blob/id HTTP/1.1\r\nRange: bytes=0-99\r\n\r\n", &second, &record)
        #expect(record.repeated("PUT") == [1: 4, 2: 10] && record.partsTwice == 1)
        #expect(record.fresh("GET") == 100 && record.repeated("GET").isEmpty)
        pass("GET /1/notes/blob/id HTTP/1.1\r\nrange: bytes=50-149\r\n\r\n", &second, &record)
        #expect(record.fresh("GET") == 150 && record.repeated("GET") == [2: 50])
        #expect(record.requests == 5)
    }
}
