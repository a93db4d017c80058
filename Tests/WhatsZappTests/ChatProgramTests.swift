import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

/// The program `whatszapp`, as people use it.
@Suite("WhatsZapp: the program", .blocking, .timeLimit(.minutes(10)))
struct ChatProgramTests {
    /// The lines of JSON that a command has printed.
    private static func lines(_ output: String) -> [JSONObject] {
        output.split(separator: "\n").compactMap { (try? JSONValue(parsing: String($0)))?.objectValue }
    }

    /// A line without the time in front.
    private static func words(_ output: String) -> [String] {
        output.split(separator: "\n").map { String($0.drop { $0 != " " }.drop { $0 == " " }) }
    }

    @Test("two people: a text and its answer, offline too, listed with their states and the unread ones")
    func texts() throws {
        let homes = try ChatHomes("alice", "bob")
        #expect(try homes.good("alice", "conversations").isEmpty)
        try homes.good("alice", "send", "bob", "Hello Bob")
        try homes.good("alice", "send", "bob", "are you\nthere?", "--offline")
        #expect(
            Self.words(try homes.good("alice", "open", "bob", "--offline")).prefix(2) == [
                "me: ✓ Hello Bob", "me: … are you",
            ])
        // A person that is no contact has the name that it gives itself, with a question mark.
        let listed = try homes.good("bob", "conversations")
        #expect(listed.hasPrefix("alice?  ") && listed.hasSuffix("(1) Hello Bob\n"), "\(listed)")
        try homes.good("bob", "contacts", "add", "alice")
        // The next command sends what was kept.
        try homes.good("alice", "conversations")
        #expect(try homes.good("bob", "conversations").hasSuffix("(2) are you there?\n"))
        let read = Self.lines(try homes.good("bob", "read", "alice", "--json"))
        #expect(read.map { $0["text"] } == [.string("Hello Bob"), .string("are you\nthere?")])
        #expect(try homes.good("bob", "read", "alice").isEmpty)
        try homes.good("bob", "send", "alice", "yes")
        let shown = Self.lines(try homes.good("alice", "open", "bob", "--json"))
        #expect(shown.map { $0["state"] } == [.string("sent"), .string("sent"), .string("received")])
        #expect(shown.map { $0["isRead"] } == [.bool(true), .bool(true), .bool(false)])
    }

    @Test("a conversation that is marked as unread is so on all machines, until it is read on one")
    func marked() throws {
        let homes = try ChatHomes("alice", "bob")
        try homes.enter("login", "bob", home: "phone")
        try homes.good("alice", "send", "bob", "when?")
        #expect(try homes.run("bob", ["unread", "alice"]).code == 0)
        try homes.good("bob", "read", "alice")
        try homes.good("bob", "unread", "alice")
        #expect(try homes.good("phone", "conversations").hasSuffix("(unread) when?\n"))
        try homes.good("phone", "read", "alice")
        #expect(try homes.good("bob", "conversations").hasSuffix("Z  when?\n"))
        #expect(try homes.run("bob", ["unread", "bob2"]).code == 3)
    }

    @Test("queue lists what waits, discard drops it with its message, and status counts")
    func queue() throws {
        let homes = try ChatHomes("alice", "bob")
        try homes.good("alice", "send", "bob", "one")
        try homes.good("alice", "send", "bob", "two", "--offline")
        let waiting = try homes.good("alice", "queue").split(separator: "\n")
        #expect(waiting.count == 2 && waiting.contains { $0.contains("create home/chat ") }, "\(waiting)")
        #expect(
            try homes.good("alice", "status", "--offline").hasSuffix(
                "0 unread messages\n2 changes wait here for the server\n"))
        #expect(try homes.run("alice", ["queue", "discard", "--all"]).code == 4, "the message was not sent")
        #expect(try homes.good("alice", "queue").isEmpty)
        #expect(Self.words(try homes.good("alice", "open", "bob")) == ["me: ✓ one", "me: ! two"])
        #expect(try homes.run("alice", ["queue", "retry"]).code == 3)
        let status = try #require(Self.lines(try homes.good("bob", "status", "--json")).first)
        #expect(status["unread"] == .number(1) && status["conversations"] == .number(1), "\(status)")
    }

    @Test("files go with a message and are fetched; what cannot be sent leaves nothing behind")
    func files() throws {
        let homes = try ChatHomes("alice", "bob")
        try Self.shell("mkdir got && head -c 300000 /dev/urandom > cat.jpg && echo note > note.txt", homes)
        let (photo, note) = (homes.path("cat.jpg"), homes.path("note.txt"))
        for (words, says) in [
            (["--file", homes.path("none")], "cannot be read"), (["--file", photo, "--file", photo], "has this name"),
        ] {
            let refused = try homes.run("alice", ["send", "bob", "our cat"] + words)
            #expect(refused.code == 1 && refused.errors.contains(says), "\(refused)")
        }
        #expect(try homes.good("alice", "open", "bob").isEmpty)
        try homes.good("alice", "send", "bob", "our cat", "--file", photo, "--file", note)
        let message = try #require(Self.lines(try homes.good("bob", "open", "alice", "--json")).first)
        #expect(message["attachments"] == .array([.string("cat.jpg"), .string("note.txt")]))
        let id = try #require(message["id"]?.stringValue)
        try homes.good("bob", "read", "alice")
        let written = try homes.good("bob", "fetch", id, homes.path("got"))
        #expect(written.split(separator: "\n").count == 2 && written.contains("/got/cat.jpg was written"))
        try Self.shell("cmp cat.jpg got/cat.jpg && cmp note.txt got/note.txt", homes)
        for (words, code) in [(["fetch", "nothing"], 3), (["fetch", id, homes.path("none")], 3)] as [([String], Int32)]
        {
            #expect(try homes.run("bob", words).code == code, "\(words)")
        }
    }

    @Test("watch prints what happens on another machine; a second program on the same profile is refused")
    func watch() throws {
        let homes = try ChatHomes("alice", "bob")
        try homes.enter("login", "bob", home: "phone")
        try homes.good("alice", "send", "bob", "first")
        let watch = try homes.watch("bob")
        try watch.wait { $0.contains { $0["text"] == .string("first") && $0["isRead"] == .bool(false) } }
        #expect(try homes.run("bob", ["conversations"]).code == 7)
        try homes.good("phone", "read", "alice")
        try watch.wait { $0.contains { $0["text"] == .string("first") && $0["isRead"] == .bool(true) } }
        try homes.good("alice", "send", "bob", "second")
        try watch.wait { $0.contains { $0["text"] == .string("second") } }
        watch.process.signal(SIGINT)
        #expect(try watch.process.finish().signal == nil)
    }

    @Test("a message that its receiver does not accept is marked, and does not keep the sender from other people")
    func refused() throws {
        let homes = try ChatHomes("alice", "bob", "carol")
        try homes.thicket("bob", "tree", "policy", "nobody")
        let refused = try homes.run("alice", ["send", "bob", "let me in"])
        #expect(refused.code == 4, "\(refused)")
        #expect(refused.errors.contains("the message 'let me in' was not sent"), "\(refused)")
        #expect(Self.words(try homes.good("alice", "open", "bob")) == ["me: ! let me in"])
        try homes.good("alice", "send", "carol", "hello")
        #expect(try homes.good("carol", "conversations").hasSuffix("(1) hello\n"))
        // Also what was written offline, when a later command sends it.
        try homes.good("alice", "send", "bob", "again", "--offline")
        #expect(try homes.run("alice", ["send", "carol", "more"]).code == 4)
        #expect(Self.words(try homes.good("alice", "open", "bob")) == ["me: ! let me in", "me: ! again"])
        #expect(try homes.good("carol", "conversations").hasSuffix("(2) more\n"))
        // Later ones to the same person do not wait for what was refused.
        try homes.thicket("bob", "tree", "policy", "everyone")
        try homes.good("alice", "send", "bob", "and now?")
        #expect(try homes.good("bob", "conversations").hasSuffix("(1) and now?\n"))
    }

    @Test("misuse ends with a code and one line that says what to do")
    func misuse() throws {
        let homes = try ChatHomes("alice", "bob")
        try homes.good("alice", "send", "bob", "one")
        for (words, code, says) in [
            (["send", "alice", "hi"], 2, "alice is this account"), (["send", "zed", "hi"], 3, "no keys of this user"),
            (["send", "bob", ""], 2, "the text is empty"), (["frob"], 2, "there is no command 'frob'"),
            (["send", "bob", String(repeating: "x", count: 7_900)], 1, "at most 7900 bytes"),
            (["delete", "bob", "nothing"], 3, "has no message nothing"),
        ] as [([String], Int32, String)] {
            let outcome = try homes.run("alice", words)
            #expect(outcome.code == code && outcome.errors.contains(says), "\(outcome)")
        }
        try homes.good("alice", "delete", "bob")
        #expect(try homes.good("alice", "conversations").isEmpty)
        #expect(try homes.good("bob", "conversations").hasSuffix("(1) one\n"), "the other person keeps it")
    }

    private static func shell(_ line: String, _ homes: ChatHomes) throws {
        let outcome = try ChildProcess.run(["/bin/sh", "-c", "cd '\(homes.path(""))' && \(line)"])
        guard outcome.code == 0 else { throw ProcessError("\(line): \(outcome)") }
    }
}
