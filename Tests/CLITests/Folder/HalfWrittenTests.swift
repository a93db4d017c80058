import Glibc
import Synchronization
import Testing
import ThicketClient
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// Files that are being saved while the mirror scans.
@Suite("thicket mirror: files that are being written")
struct HalfWrittenTests {
    private let folder = TemporaryFolder("half")

    /// Gives the same answer for every file.
    private final class Teller: FolderSignal {
        private let knows: Bool
        init(knows: Bool) { self.knows = knows }
        func wait() -> Bool { false }
        func isWritten(_ name: String) -> Bool { knows }
        func stop() {}
    }

    private func mirror(_ signal: any FolderSignal, _ clock: MirrorClock = .init()) async throws -> (Mirror, Bucket) {
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
            directory: folder.path, open: open, state: state, isOnce: false, signal: signal,
            clock: clock)
        try await mirror.markComplete()
        return (mirror, bucket)
    }

    @Test("a closed file is sent at once, whatever its size was before")
    func closed() async throws {
        let (mirror, bucket) = try await mirror(Teller(knows: true))
        for text in ["a", "ab", "abc", "b"] {
            try Files.replace(folder.path + "/page.txt", Array(text.utf8), mode: 0o644)
            let again = try await mirror.round(nil).again
            #expect(again == nil)
            #expect(try await bucket.get("page.txt")?["text"] == .string(text))
        }
    }

    /// Shows the time that the test sets.
    private final class Hand: Sendable {
        let time: Atomic<Int64>
        init(_ time: Int64) { self.time = .init(time) }
        var clock: MirrorClock { .init(fileTime: { self.time.load(ordering: .relaxed) }) }
    }

    /// Writes a file with this stamp.
    private func write(_ name: String, _ text: String, at time: Int64) throws {
        try Files.replace(folder.path + "/" + name, Array(text.utf8), mode: 0o644)
        let stamp = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
        #expect(utimensat(AT_FDCWD, folder.path + "/" + name, [stamp, stamp], 0) == 0)
    }

    @Test(
        "a file whose time is within 150 ms of now waits, also when it is ahead of now; any other file does not",
        arguments: [
            (-3_600_000, false), (-150, false), (-149, true), (-1, true), (0, true), (1, true), (150, true),
            (151, false), (3_600_000, false),
        ])
    func times(milliseconds: Int64, waits: Bool) async throws {
        let now: Int64 = 1_700_000_000_000_000_000
        let hand = Hand(now)
        let (mirror, bucket) = try await mirror(Teller(knows: false), hand.clock)
        try write("page.txt", "text", at: now + milliseconds * 1_000_000)
        let again = try await mirror.round(nil).again
        #expect(again == (waits ? 150 : nil))
        #expect(try await bucket.get("page.txt") == (waits ? nil : ["text": "text"]))
        hand.time.store(now + 400_000_000, ordering: .relaxed)
        #expect(try await mirror.round(nil).again == nil)
        #expect(try await bucket.get("page.txt") == ["text": "text"])
    }

    @Test("an empty file waits until it is at rest, closed or not")
    func emptied() async throws {
        let now: Int64 = 1_700_000_000_000_000_000
        let hand = Hand(now)
        let (mirror, bucket) = try await mirror(Teller(knows: true), hand.clock)
        try write("page.txt", "a", at: now)
        #expect(try await mirror.round(nil).again == nil)
        try write("page.txt", "", at: now)
        #expect(try await mirror.round(nil).again == 150)
        #expect(try await bucket.get("page.txt") == ["text": "a"])
        hand.time.store(now + 150_000_000, ordering: .relaxed)
        #expect(try await mirror.round(nil).again == nil)
        #expect(try await bucket.get("page.txt") == ["text": ""])
    }

    #if os(Linux)
        /// One event as the kernel writes it.
        private func event(_ mask: Int, _ name: String = "") -> [UInt8] {
            let length = name.isEmpty ? 0 : (name.utf8.count / 16 + 1) * 16
            var bytes = [UInt8]()
            for word: UInt32 in [1, UInt32(mask), 0, UInt32(length)] {
                withUnsafeBytes(of: word) { bytes.append(contentsOf: $0) }
            }
            return bytes + Array(name.utf8) + Array(repeating: 0, count: length - name.utf8.count)
        }

        @Test(
            "a file counts as written when it was closed or moved in, and no longer when a program writes to it again")
        func events() {
            var files = WrittenFiles()
            let create = Int(IN_CREATE)
            let modify = Int(IN_MODIFY)
            let close = Int(IN_CLOSE_WRITE)
            let cases: [(mask: Int, name: String, isWritten: Bool, isNews: Bool)] = [
                (create, "a", false, true), (modify, "a", false, false), (close, "a", true, true),
                (modify, "a", false, false), (close, "a", true, true), (Int(IN_DELETE), "a", false, true),
                (Int(IN_MOVED_TO), "a name of 16 byt", true, true),
                (Int(IN_MOVED_FROM), "a name of 16 byt", false, true),
                (close, "b", true, true), (Int(IN_Q_OVERFLOW), "b", false, true),
            ]
            for (number, row) in cases.enumerated() {
                #expect(files.apply(event(row.mask, row.name)[...]) == row.isNews, "\(number)")
                #expect(files.contains(row.name) == row.isWritten, "\(number)")
            }
            // Several events at once count together; a piece of an event counts for nothing.
            #expect(files.apply((event(modify, "c") + event(close, "c"))[...]) == true)
            #expect(files.contains("c"))
            #expect(files.apply(event(close, "d").dropLast()) == false)
            #expect(!files.contains("d"))
            #expect(!files.contains("e\u{301}"))
            #expect(files.apply(event(close, "\u{e9}")[...]) == true)
            #expect(!files.contains("e\u{301}"))
            for number: Int in 0...WrittenFiles.namesMax { _ = files.apply(event(close, "n\(number)")[...]) }
            #expect(!files.contains("n0"))
            #expect(files.contains("n\(WrittenFiles.namesMax)"))
        }

        @Test("the kernel reports when a file is closed, and that it is being written until then")
        func kernel() throws {
            let signal: InotifySignal = try #require(.init(folder: folder.path, everyMilliseconds: 60_000))
            let file = open(folder.path + "/page.txt", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            #expect(Glibc.write(file, "half", 4) == 4)
            #expect(signal.wait())
            #expect(!signal.isWritten("page.txt"))
            close(file)
            // An event that the kernel has queued and the mirror has not read counts for nothing.
            #expect(!signal.isWritten("page.txt"))
            #expect(signal.wait())
            #expect(signal.isWritten("page.txt"))
            try Files.replace(folder.path + "/page.txt", Array("whole".utf8), mode: 0o600)
            #expect(!signal.isWritten("page.txt"))
            #expect(signal.wait())
            #expect(signal.isWritten("page.txt"))
            signal.stop()
            #expect(!signal.wait())
        }
    #endif
}
