import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

/// The walk through a messaging app's tree that the product's first document shows in pictures, with the real programs:
/// the pictures are what `thicket tree tree` prints.
@Suite("thicket tree: a conversation of two accounts, step by step", .blocking)
struct SeedWalkTests {
    private let bench: CommandBench

    init() throws {
        bench = try CommandBench()
        let place = try bench.appWords()
        for (name, home) in [("alice", "home"), ("bob", "other")] {
            try bench.enter("signup", name, home: home, at: place)
        }
    }

    /// The two pictures of an account: its conversations, and its inbox.
    private func picture(_ home: String) throws -> [String] {
        try ["home", "inbox"].map { try bench.good(["tree", "tree", $0], home: home) }
    }

    /// Writes a message into a conversation, and copies it into the other account's inbox.
    private func write(_ text: String, as path: String, to user: String, home: String) throws -> String {
        let (folder, name) = (try #require(path.split(separator: "/").first), bench.path("text"))
        _ = try bench.run(["tree", "mkdir", "home/\(folder)"], home: home)
        _ = try ChildProcess.run(["/bin/sh", "-c", "printf %s '\(text)' > '\(name)'"], input: "", variables: [:])
        try bench.good(["tree", "put", name, "home/\(path)"], home: home)
        let sent = try bench.good(["tree", "send", user, "home/\(path)", "--json"], home: home)
        let object = try JSONValue(parsing: Array(try #require(sent.split(separator: "\n").first).utf8))
        return try #require(object["message"]?.stringValue)
    }

    @Test("Alice writes to Bob, Bob reads it, puts it into his conversation and answers: each step is the picture")
    func walk() throws {
        let alone = ["home\n", "inbox\n"]
        #expect(try picture("home") == alone && picture("other") == alone)
        // Alice creates a conversation and a message in it, which the server copies into Bob's inbox.
        let first = try write("hello Bob", as: "convoBob/msg1", to: "bob", home: "home")
        let alices = ["home\n  convoBob/\n    msg1\n", "inbox\n"]
        #expect(try picture("home") == alices)
        #expect(try picture("other") == ["home\n", "inbox\n  \(first)\n"])
        // Bob reads it, and moves it into a conversation.
        #expect(try bench.good(["tree", "cat", "inbox/\(first)"], home: "other") == "hello Bob")
        try bench.good(["tree", "mkdir", "home/convoAlice"], home: "other")
        try bench.good(["tree", "mv", "inbox/\(first)", "home/convoAlice/msg1"], home: "other")
        #expect(try picture("home") == alices)
        #expect(try picture("other") == ["home\n  convoAlice/\n    msg1\n", "inbox\n"])
        // Bob answers: the reverse.
        let second = try write("hello Alice", as: "convoAlice/msg2", to: "alice", home: "other")
        #expect(try picture("other") == ["home\n  convoAlice/\n    msg1\n    msg2\n", "inbox\n"])
        #expect(try picture("home") == ["home\n  convoBob/\n    msg1\n", "inbox\n  \(second)\n"])
        try bench.good(["tree", "mv", "inbox/\(second)", "home/convoBob/msg2"], home: "home")
        #expect(try bench.good(["tree", "cat", "home/convoBob/msg2"], home: "home") == "hello Alice")
        #expect(try picture("home") == ["home\n  convoBob/\n    msg1\n    msg2\n", "inbox\n"])
    }
}
