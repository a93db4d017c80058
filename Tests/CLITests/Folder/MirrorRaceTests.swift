import Glibc
import Testing
import ThicketClient
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// A mirror at work while other clients edit the same bucket.
@Suite("thicket mirror: other clients edit at the same moment")
struct MirrorRaceTests {
    private let folder = TemporaryFolder("race")

    @Test("an object that is edited at the moment its file is found deleted stays, and comes back as a file")
    func editedWhileRemoved() async throws {
        var options = SessionOptions()
        options.startsOnline = false
        let session = try await Thicket.connect(
            server: "http://127.0.0.1:9", app: "app", token: "token", options: options)
        let bucket = try await session.bucket("notes")
        let open = OpenBucket(
            session: session, bucket: bucket, name: "notes", server: "http://127.0.0.1:9",
            wait: WaitBudget(.seconds(10), isWhole: false),
            isKept: true)
        let state = try MirrorState(
            directory: folder.path, server: open.server, app: "app", bucket: open.name)
        let mirror = Mirror(
            directory: folder.path, open: open, state: state, isOnce: true,
            limit: try RemovalLimit("all"))
        try await mirror.markComplete()
        let names = (100..<400).map { "k\($0).txt" }
        for name in names { try Files.replace("\(folder.path)/\(name)", Array("first".utf8), mode: 0o644) }
        _ = try await mirror.round(nil)
        #expect(try await bucket.keys().count == names.count)

        for name in names { unlink("\(folder.path)/\(name)") }
        // Whenever an object is removed, the next one is edited a few calls later, so edits fall before, after and
        // between all that the mirror does about an object.
        let events = await bucket.changes
        let editor = Task {
            var edited = [String]()
            for await event in events {
                if case .changed(let change) = event, change.key == "end" { break }
                guard case .removed(let removal) = event, let place = names.firstIndex(of: removal.key),
                    place + 1 < names.count
                else { continue }
                for _ in 0..<(edited.count % 12) { _ = try await bucket.get("end") }
                try await bucket.set(names[place + 1], to: ["text": "edited"])
                edited.append(names[place + 1])
            }
            return edited
        }
        _ = try await mirror.round(nil)
        try await bucket.set("end", to: ["n": 1])
        let edited = try await editor.value
        #expect(edited.count > names.count / 4)
        for name in edited {
            #expect(try await bucket.get(name) == ["text": "edited"], "the edit of \(name) was removed with it")
        }
        _ = try await mirror.round(nil)
        for name in edited {
            #expect(Files.read("\(folder.path)/\(name)", bytesMax: 100) == .bytes(Array("edited".utf8)), "\(name)")
        }
        await session.close()
    }
}
