import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketProcesses
import ThicketProtocol
import ThicketThreats

/// A machine in the hands of a thief (attack A15).
@Suite("A stolen machine", .blocking, .timeLimit(.minutes(10)))
struct StolenMachineTests {
    private static let kinds = [
        "container", "name", "small content", "large content", "waiting content", "sent message", "received message",
        "note title", "new name", "passphrase",
    ]

    private let house: ThreatHouse
    private let ann: TreeRun
    private let words = Dictionary(uniqueKeysWithValues: kinds.map { ($0, "canary\(RandomBytes.hex(10))") })

    init() throws {
        house = try ThreatHouse("stolen")
        ann = TreeRun(house, "stolen-homes", ["THICKET_PASSPHRASE": words["passphrase"] ?? ""])
        try ann.signUp()
        try ann.signUp("login", home: "two")
        try ann.signUp(home: "ben", as: "ben")
    }

    private func word(_ kind: String) -> String { words[kind] ?? "" }

    /// A life with trees, messages and notes on the machine `one`, with a change that waits.
    private func live() throws {
        try ann.shell("mkdir in && yes \(word("large content")) | head -c 300000 > in/large")
        try ann.shell("echo \(word("small content")) > in/small && echo \(word("waiting content")) > in/waits")
        let container = word("container")
        try ann.run(["tree", "put", "-p", ann.path("in/small"), "\(container)/\(word("name"))"])
        try ann.run(["tree", "put", ann.path("in/large"), "\(container)/large"])
        try ann.run(["tree", "cat", "\(container)/large"])
        try ann.run(["tree", "send", "ben", "--text", word("sent message")])
        try ann.run(["tree", "send", "ann", "--text", word("received message")], home: "ben")
        #expect(try ann.run(["tree", "inbox"]).output.contains(word("received message")))
        try ann.run(["onions", "new"], input: "\(word("note title"))\ntext")
        try ann.run(["tree", "put", "--offline", ann.path("in/waits"), "\(container)/waits"])
    }

    @Test(
        "A15: a locked machine that is stolen has no name, content, message or token in any file, and opens to no guess"
    )
    func locked() throws {
        try live()
        let token = String(try ann.run(["token", "print"]).output.dropLast())
        try ann.run(["lock"])
        let search = CanarySearch(words.map { Canary($0.key, $0.value) } + [Canary("the token", token)])
        let files = ThreatHouse.files(ann.path("one"))
        for part in ["tree.db", ".files/", "keys.json"] {
            #expect(files.contains { $0.path.contains(part) && !$0.bytes.isEmpty }, "\(part) was not searched")
        }
        for file in files {
            #expect(search.findings(in: file.bytes + Array(file.path.utf8), place: file.path).isEmpty)
        }
        for call in [
            ["tree", "ls"], ["tree", "inbox"], ["tree", "cat", "x"], ["onions", "list"], ["token", "print"],
        ] {
            let refused = try ann.run(call, codes: [8])
            #expect(refused.output.isEmpty && refused.errors.contains("locked"), "\(refused)")
        }
        let guess = try ann.with(["THICKET_PASSPHRASE": "four green leaves"]).run(["unlock"], codes: [6])
        #expect(guess.errors.contains("not the passphrase"), "\(guess)")
        try ann.run(["tree", "ls"], codes: [8])
        // Counterproof: the passphrase opens all of it.
        try ann.run(["unlock"])
        #expect(try ann.run(["tree", "ls", word("container")]).output.contains(word("name")))
        #expect(try ann.run(["tree", "cat", "\(word("container"))/waits"]).output.contains(word("waiting content")))
    }

    @Test("A15: a stolen machine whose login another machine has ended writes nothing, with the passphrase known")
    func revoked() throws {
        try ann.shell("echo \(word("small content")) > small")
        try ann.run(["tree", "put", ann.path("small"), word("name")])
        try ann.run(["tree", "pull"], home: "two")
        let logins = try ann.run(["token", "list", "--json"], home: "two").output.split(separator: "\n")
            .compactMap { try? JSONValue(parsing: Array($0.utf8)) }
        let stolen = try #require(logins.first { $0["this"]?.boolValue == false }?["id"]?.stringValue)
        try ann.run(["token", "revoke", stolen], home: "two")
        let calls = [
            ["tree", "put", ann.path("small"), word("new name")], ["tree", "mv", word("name"), word("new name")],
            ["tree", "send", "ben", "--text", word("sent message")], ["tree", "rm", word("name")],
        ]
        for call in calls {
            let refused = try ann.run(call, codes: [6])
            #expect(refused.errors.contains("the login has ended"), "\(refused)")
        }
        let list = try ann.run(["tree", "ls"], home: "two").output
        #expect(list.contains(word("name")) && !list.contains(word("new name")), "\(list)")
        #expect(!(try ann.run(["tree", "inbox"], home: "ben").output.contains(word("sent message"))))
    }
}
