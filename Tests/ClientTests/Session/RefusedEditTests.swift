import Testing
import ThicketProtocol

@testable import ThicketClient

/// Refused edits in an app: no reader misses one, and each way out ends it.
@Suite("Refused edits in sessions", .timeLimit(.minutes(15)))
struct RefusedEditTests {
    private let server = LoopbackServer()

    /// A session over a file, and its bucket with an edit that the server has refused.
    private func refused(_ path: String, _ kind: BucketKind) async throws -> (Session, Bucket) {
        let session = try await session(path)
        let notes = try await session.bucket("notes", kind)
        try await notes.set("small", to: ["n": 1])
        try await notes.waitUntilSynced(timeout: .seconds(120))
        server.with { $0.refusal = 413 }
        try await notes.set("large", to: ["n": 2])
        let error = await #expect(throws: ClientError.self) {
            try await notes.waitUntilSynced(timeout: .seconds(120))
        }
        #expect(error?.code == .refused && error?.number == 413)
        server.with { $0.refusal = nil }
        return (session, notes)
    }

    private func session(_ path: String, isOnline: Bool = true) async throws -> Session {
        try await server.session(
            store: { () throws(ClientError) in try SQLiteLocalStore(path: path) }, startsOnline: isOnline)
    }

    private func first(_ bucket: Bucket) async -> BucketEvent? {
        var events = await bucket.changes.makeAsyncIterator()
        return await events.next()
    }

    @Test(
        "each later reader gets the refused edits, and so does the first reader after a restart",
        arguments: BucketKind.allCases)
    func late(kind: BucketKind) async throws {
        let folder = try TemporaryFolder()
        let (one, notes) = try await refused(folder.file("a.db"), kind)
        let edit = try #require(try await notes.refused().first)
        #expect(edit.key == "large" && edit.error.number == 413 && edit.reason.contains("too large"))
        for _ in 0..<2 { #expect(await first(notes) == .refused(edit)) }
        await one.close()
        let two = try await session(folder.file("a.db"), isOnline: false)
        let again = try await two.bucket("notes", kind)
        #expect(try await again.refused() == [edit])
        #expect(await first(again) == .refused(edit))
        #expect(try await again.get("large") == ["n": 2], "the edit is kept")
        await two.close()
    }

    /// The ways in which a refused edit ends.
    enum Way: CaseIterable { case discarded, sentAgain, edited, dropped }

    @Test(
        "after each way out no refused edit is listed, and no later reader gets one", arguments: Way.allCases,
        BucketKind.allCases)
    func waysOut(way: Way, kind: BucketKind) async throws {
        let folder = try TemporaryFolder()
        let (session, notes): (Session, Bucket) = try await refused(folder.file("a.db"), kind)
        switch way {
        case .discarded: #expect(try await notes.discardRefused("large"))
        case .dropped: #expect(try await notes.discardUnsent("large"))
        case .sentAgain: #expect(try await notes.retryRefused("large"))
        case .edited: try await notes.set("large", to: ["n": 3])
        }
        try await notes.waitUntilSynced(timeout: .seconds(120))
        #expect(try await notes.refused().isEmpty)
        #expect(try await notes.pendingCount == 0)
        let left: JSONObject? = way == .sentAgain ? ["n": 2] : way == .edited ? ["n": 3] : nil
        #expect(try await notes.get("large") == left)
        #expect(try kind.object(server, "large") == left)
        var events = await notes.changes.makeAsyncIterator()
        try await notes.set("small", to: ["n": 4])
        guard case .changed(let change)? = await events.next() else { throw NotAnObject() }
        #expect(change.key == "small")
        #expect(try await notes.discardUnsent("large") == false)
        #expect(try await notes.retryRefused("large") == false)
        await session.close()
    }

    @Test("a reader with less room than there are refused edits is told that it missed some")
    func room() async throws {
        server.with { $0.refusal = 400 }
        let session = try await server.session()
        let notes = try await session.bucket("notes")
        for key in ["a", "b", "c"] { try await notes.set(key, to: ["n": 1]) }
        await #expect(throws: ClientError.self) { try await notes.waitUntilSynced(timeout: .seconds(120)) }
        let (stream, continuation) = AsyncStream.makeStream(
            of: BucketEvent.self, bufferingPolicy: .bufferingOldest(1))
        await notes.engine.listen(notes.bucket, continuation)
        var events = stream.makeAsyncIterator()
        guard case .refused? = await events.next() else { throw NotAnObject() }
        #expect(await events.next() == .overrun(missed: 2))
        #expect(try await notes.refused().map(\.key) == ["a", "b", "c"])
        await session.close()
    }

    @Test(
        "an edit that was never sent can be discarded",
        arguments: BucketKind.allCases)
    func unsent(kind: BucketKind) async throws {
        let session = try await server.session(startsOnline: false)
        let notes = try await session.bucket("notes", kind)
        try await notes.set("a", to: ["n": 1])
        #expect(try await notes.refused().isEmpty, "it was not refused")
        #expect(try await notes.discardRefused("a") == false)
        #expect(try await notes.discardUnsent("a"))
        #expect(try await notes.get("a") == nil)
        #expect(try await notes.pendingCount == 0)
        await session.close()
    }
}
