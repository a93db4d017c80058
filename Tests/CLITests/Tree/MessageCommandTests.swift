import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// Messages between two accounts, with the real programs.
@Suite("thicket tree: messages", .blocking)
struct MessageCommandTests {
    /// A server with the accounts `ann` (home) and `ben` (other).
    private func people() throws -> CommandBench {
        let bench = try CommandBench()
        let place = try bench.appWords()
        for (name, home) in [("ann", "home"), ("ben", "other")] {
            try bench.enter("signup", name, home: home, at: place)
        }
        return bench
    }

    private func objects(_ output: String) throws -> [JSONValue] {
        try output.split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)) }
    }

    @Test("a text with a picture is listed with its author, read, moved, and cannot be burned after that")
    func picture() throws {
        let bench = try people()
        _ = try ChildProcess.run(
            ["/bin/bash", "-c", "head -c 3M /dev/urandom > \(bench.path("cat"))"], input: "", variables: [:])
        let sent = try objects(
            try bench.good(["tree", "send", "ben", "--text", "hello\u{1B}[2J", "--attach", bench.path("cat"), "--json"])
        )
        let id = try #require(sent.first?["message"]?.stringValue)
        let shown = try bench.run(["tree", "inbox"], home: "other")
        #expect(shown.code == 0 && shown.errors.isEmpty, "\(shown)")
        let lines = shown.output.split(separator: "\n")
        #expect(lines.count == 3 && lines.first?.hasSuffix("  ann (request)  inbox/\(id)") == true, "\(shown)")
        #expect(lines[1] == "    hello\\u{1b}[2J" && lines[2] == "    + cat  3.0 MiB", "\(shown)")
        try bench.good(["tree", "get", "inbox/\(id)/cat", bench.path("copy")], home: "other")
        #expect(
            try ChildProcess.run(["/bin/cmp", bench.path("cat"), bench.path("copy")], input: "", variables: [:]).code
                == 0)
        try bench.good(["tree", "mv", "inbox/\(id)", "home/kept"], home: "other")
        let burned = try bench.run(["tree", "burn", id])
        #expect(burned.code == 3 && burned.errors.contains("not in the inbox of ben"), "\(burned)")
        #expect(try bench.good(["tree", "ls", "kept"], home: "other") == "cat\n")
    }

    @Test("a policy admits contacts, blocks one account, and is what every device of the account shows")
    func policy() throws {
        let bench = try people()
        #expect(try bench.good(["tree", "policy"], home: "other").hasPrefix("everyone: "))
        let first = try bench.good(["tree", "policy", "contacts"], home: "other")
        #expect(first == "contacts: 0 accounts may write to this one\n")
        let refused = try bench.run(["tree", "send", "ben", "--text", "hello"])
        #expect(refused.code != 0 && refused.errors.contains("ben"), "\(refused)")
        #expect(try bench.good(["tree", "inbox"], home: "other").isEmpty)
        try bench.good(["contacts", "add", "ann"], home: "other")
        #expect(try bench.good(["tree", "policy", "--admit", "ann"], home: "other").contains("    ann\n"))
        try bench.good(["tree", "send", "ben", "--text", "hello"])
        let shown = try bench.good(["tree", "inbox"], home: "other")
        #expect(shown.contains("(verified)") && shown.contains("    hello\n"), "\(shown)")
        #expect(try bench.good(["tree", "inbox", "--requests"], home: "other").isEmpty)
        let blocked = try bench.good(["tree", "policy", "everyone", "--block", "ann"], home: "other")
        #expect(
            blocked == "everyone: all accounts of the app may write to this one\nblocked, whatever else:\n    ann\n")
        let again = try bench.run(["tree", "signal", "ben", "--text", "hello"])
        #expect(again.code != 0, "\(again)")
        try bench.good(["tree", "policy", "--unblock", "ann"], home: "other")
        try bench.good(["tree", "signal", "ben", "--text", "again"])
        #expect(try bench.good(["tree", "inbox"], home: "other").contains("again"))
    }

    @Test("a policy that is none, and an account that is blocked and unblocked at once, are refused with code 2")
    func policyMisused() throws {
        let bench = try people()
        for words in [["all"], ["--block", "ann", "--unblock", "ann"]] {
            let refused = try bench.run(["tree", "policy"] + words, home: "other")
            #expect(refused.code == 2 && !refused.errors.isEmpty, "\(refused)")
        }
        let unknown = try bench.run(["tree", "policy", "nobody", "--block", "cem"], home: "other")
        #expect(unknown.code == 3 && unknown.errors.contains("was not changed: cem: "), "\(unknown)")
        #expect(try bench.good(["tree", "policy"], home: "other").hasPrefix("everyone: "))
    }

    @Test("a burned message leaves a gap that the inbox names; unknown receivers are refused before anything is sent")
    func gap() throws {
        let bench = try people()
        try bench.good(["tree", "inbox"], home: "other")
        let unknown = try bench.run(["tree", "send", "ben", "cem", "--text", "hello"])
        #expect(unknown.code == 3 && unknown.errors.contains("nothing was sent: cem: "), "\(unknown)")
        let first = try objects(try bench.good(["tree", "signal", "ben", "--text", "one", "--json"]))
        let id = try #require(first.first?["message"]?.stringValue)
        #expect(try bench.good(["tree", "burn", id]) == "\(id) is removed from the inbox of ben\n")
        try bench.good(["tree", "send", "ben", "--text", "two"])
        let listed = try objects(try bench.good(["tree", "inbox", "--json"], home: "other"))
        #expect(listed.map { $0["text"]?.stringValue } == ["two"])
        #expect(listed.map { $0["missing"]?.intValue } == [1] && listed.map { $0["counter"]?.intValue } == [2])
        let shown = try bench.good(["tree", "inbox", "--offline"], home: "other")
        #expect(shown.contains("    ! 1 message missing: "), "\(shown)")
    }
}
