import Testing
import ThicketClient
import ThicketProtocol
import ThicketSealed

@Suite("Edits of sealed objects that wait", .timeLimit(.minutes(10)))
struct SealedJournalTests {
    @Test("each offline keystroke in a sealed object is one step, from the second on, and reads as the whole")
    func steps() throws {
        var world = try Simulation(clients: 1, seed: 11, isSealed: true)
        world.perform(0, world.clients[0].machine.goOnline(now: 0))
        try world.insertSomething(0, "doc0")
        let isQuiet = world.settle()
        #expect(isQuiet)
        world.perform(0, world.clients[0].machine.goOffline(.requested, now: world.now))
        world.cut(0)
        for number in 0..<200 {
            // The store replays the steps and compares (`replaysSteps`).
            try world.insertSomething(0, "doc0")
            let write = try #require(world.clients[0].store.newest.first)
            #expect(world.clients[0].store.newest.count == 1 && write.parts == .edits)
            #expect(write.laterSteps?.count == (number == 0 ? nil : 1), "keystroke \(number)")
        }
        let name = try EntityKey("doc0")
        let typed = try world.clients[0].machine.object(world.bucket, name)
        try world.crash(0)
        let kept = try world.clients[0].machine.object(world.bucket, name)
        #expect(kept == typed && typed?["t"]?.stringValue?.count == 201)
        world.perform(0, world.clients[0].machine.goOnline(now: world.now))
        let isSent = world.settle()
        #expect(isSent)
        #expect(try world.truth()["doc0"]?.object == typed)
        #expect(world.alarms.isEmpty && world.problems.isEmpty)
    }

    @Test("a long edit stored keystroke by keystroke is complete after a restart, and on another device")
    func file() async throws {
        let server = LoopbackServer()
        server.with { $0.sealedBuckets = ["notes"] }
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let make: @Sendable () throws(ClientError) -> any LocalStore = { () throws(ClientError) in
            try SQLiteLocalStore(path: path)
        }
        var session = try await server.session(store: make)
        var bucket = try await session.bucket("notes", .sealed)
        try await bucket.set("page", to: ["t": "."])
        try await bucket.waitUntilSynced(timeout: .seconds(120))
        server.setDown(true)
        let paste = String(repeating: "A page of many words. ", count: 500)
        try await bucket.editText("page", path: ["t"], at: 0, inserting: paste)
        for number in 0..<120 {
            // Some of the text is deleted again, and another member changes beside it.
            try await bucket.editText("page", path: ["t"], at: number * 7, deleting: number % 3, inserting: "\(number)")
            if number % 10 == 0 {
                let text = try #require(try await bucket.get("page")?["t"])
                try await bucket.set("page", to: ["t": text, "n": .number(JSONNumber(Int64(number)))])
            }
        }
        let typed = try await bucket.get("page")
        await session.close()
        session = try await server.session(store: make)
        bucket = try await session.bucket("notes", .sealed)
        #expect(try await bucket.get("page") == typed)
        server.setDown(false)
        try await bucket.waitUntilSynced(timeout: .seconds(120))
        let other = try await server.session()
        let there = try await other.bucket("notes", .sealed)
        try await there.waitUntilSynced(timeout: .seconds(120))
        #expect(try await there.get("page") == typed)
        await session.close()
        await other.close()
    }
}
