import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Two machines set one object to the same, one of them without a connection (docs/decisions/0086).
@Suite("thicket: the same object from two machines", .blocking)
struct EqualObjectTests {
    private static let milk = #"{"text":"shopping: milk"}"#

    /// Two homes that have `list/k` at `shopping:`, in an open or in a sealed bucket, with the logins that a sealed one
    /// needs.
    private func shopping(isSealed: Bool) throws -> CommandBench {
        let bench = try CommandBench()
        if isSealed {
            let output = try Daemon.command(
                bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
            ).output
            let key: Substring? = try #require(output.split(separator: "\n").first).split(separator: " ").last
            let ann = [
                "--server", bench.address, "--app", "notes", "--api-key", String(key ?? ""), "--user", "ann",
            ]
            try bench.good(["signup"] + ann, variables: ["THICKET_PASSWORD": "sesame"])
            try bench.good(["put", "--sealed", "list", "k", #"{"text":"shopping:"}"#])
            try bench.good(["login"] + ann, home: "other", variables: ["THICKET_PASSWORD": "sesame"])
        } else {
            try bench.login()
            try bench.login(home: "other")
            try bench.good(["put", "list", "k", #"{"text":"shopping:"}"#])
        }
        #expect(try bench.good(["get", "list", "k", "--path", "text"], home: "other") == "shopping:\n")
        return bench
    }

    private func expect(_ bench: CommandBench, _ text: String) throws {
        for home in ["home", "other"] {
            let shown = try bench.good(["get", "list", "k", "--path", "text"], home: home)
            #expect(shown == text + "\n", "\(home)")
        }
    }

    @Test("put: the same text appears once, and nothing is sent a second time", arguments: [false, true])
    func put(isSealed: Bool) throws {
        let bench = try shopping(isSealed: isSealed)
        try bench.good(["put", "list", "k", Self.milk, "--offline"], home: "other")
        try bench.good(["put", "list", "k", Self.milk])
        let version = try bench.good(["ls", "list"])
        try bench.good(["ls", "list"], home: "other")
        try expect(bench, "shopping: milk")
        #expect(try bench.good(["ls", "list"]) == version, "no version is made")
        #expect(try bench.good(["status"], home: "other").contains("not sent") == false)
        #expect(try bench.good(["put", "list", "k", Self.milk], home: "other").contains("is so already"))
    }

    @Test("another difference is sent, and the same text still appears once", arguments: [false, true])
    func putMore(isSealed: Bool) throws {
        let bench = try shopping(isSealed: isSealed)
        try bench.good(["put", "list", "k", #"{"text":"shopping: milk","n":1}"#, "--offline"], home: "other")
        try bench.good(["put", "list", "k", Self.milk])
        try bench.good(["ls", "list"], home: "other")
        try expect(bench, "shopping: milk")
        #expect(try bench.good(["get", "list", "k", "--path", "n"]) == "1\n")
    }

    @Test("import, and a mirror whose file was written meanwhile, keep the same text once", arguments: [false, true])
    func folders(isSealed: Bool) throws {
        let bench = try shopping(isSealed: isSealed)
        try bench.good(["mirror", bench.path("m"), "list", "--once"], home: "other")
        let file = try #require(["k.txt", "k.md", "k"].first { bench.exists("m/" + $0) })
        try bench.write("m/" + file, "shopping: milk")
        mkdir(bench.path("in"), 0o700)
        try bench.write("in/k.json", Self.milk)
        try bench.good(["put", "list", "k", Self.milk, "--offline"], home: "other")
        try bench.good(["import", "list", bench.path("in")])
        try bench.good(["import", "list", bench.path("in")], home: "other")
        try bench.good(["mirror", bench.path("m"), "list", "--once"], home: "other")
        try expect(bench, "shopping: milk")
        #expect(bench.read("m/" + file) == "shopping: milk")
    }

    @Test("a mirror that could not send what it read: the same text from another machine appears once")
    func mirrorOffline() throws {
        let bench = try shopping(isSealed: false)
        try bench.good(["mirror", bench.path("m"), "list", "--once"], home: "other")
        let file = try #require(["k.txt", "k.md", "k"].first { bench.exists("m/" + $0) })
        try bench.good(["put", "list", "k", Self.milk, "--offline"])
        try bench.write("m/" + file, "shopping: milk")
        try bench.good(["mirror", bench.path("m"), "list", "--once"], home: "other")
        try bench.good(["ls", "list"])
        try expect(bench, "shopping: milk")
        #expect(bench.read("m/" + file) == "shopping: milk")
    }
}
