import Glibc
import Testing
import ThicketBlocking
import ThicketClient
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// The tree from the command line, with the real programs.
@Suite("thicket tree: commands", .blocking)
struct TreeCommandTests {
    @Test(
        "a file that one machine puts is listed, printed and copied on another one, with its time; the server reads none"
    )
    func oneFile() throws {
        let homes = try TreeHomes()
        try homes.bench.write("plan.md", "canary\n")
        try homes.shell("touch -d '2020-02-03 04:05:06.789' plan.md")
        #expect(try homes.tree("put", homes.path("plan.md"), "plan.md") == "home/plan.md is at version 1\n")
        #expect(try homes.tree("ls", home: "other") == "plan.md\n")
        #expect(try homes.tree("cat", "home/plan.md", home: "other") == "canary\n")
        try homes.tree("get", "plan.md", homes.path("copy.md"), home: "other")
        #expect(try homes.shell("cat copy.md && date -r copy.md -u +%s.%3N") == "canary\n1580702706.789\n")
        #expect(try !homes.serverHolds("canary") && !homes.serverHolds("plan.md"))
    }

    @Test("put of the same content changes nothing, and of another one makes a version")
    func versions() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "one")
        try homes.tree("put", homes.path("f"), "f")
        try homes.shell("touch f")
        #expect(try homes.tree("put", homes.path("f"), "f", home: "other") == "home/f is so already, version 1\n")
        try homes.bench.write("f", "two")
        #expect(try homes.tree("put", homes.path("f"), "f", home: "other") == "home/f is at version 2\n")
        #expect(try homes.tree("cat", "f") == "two")
    }

    @Test("get leaves an equal file as it is, refuses to replace another one, and replaces it with --force")
    func existing() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "content")
        try homes.tree("put", homes.path("f"), "f")
        #expect(try homes.tree("get", "f", homes.path("f")) == "\(homes.path("f")) is the same already\n")
        try homes.bench.write("f", "changed")
        let refused = try homes.run("get", "f", homes.path("f"))
        #expect(refused.code == 1 && refused.errors.contains("--force"), "\(refused)")
        #expect(homes.bench.read("f") == "changed")
        try homes.tree("get", "--force", "f", homes.path("f"))
        #expect(homes.bench.read("f") == "content")
        try homes.shell("rm f && ln -s elsewhere f")
        #expect(try homes.run("get", "--force", "f", homes.path("f")).code == 1)
        #expect(try homes.shell("readlink f") == "elsewhere\n", "a link is not replaced")
    }

    @Test("mkdir, mv and rm of one machine are what the other one lists; each is refused with its reason and code")
    func shape() throws {
        let homes = try TreeHomes()
        let missing = try homes.run("mkdir", "a/b")
        #expect(missing.code == 3 && missing.errors.contains("mkdir -p"), "\(missing)")
        try homes.tree("mkdir", "-p", "a/b/c")
        try homes.tree("mkdir", "-p", "a/b/c")
        #expect(try homes.run("mkdir", "A").code == 1, "the name is that of another node")
        try homes.tree("mv", "a/b", #"x\/y"#, home: "other")
        #expect(try homes.tree("tree") == "home\n  a/\n  x\\/y/\n    c/\n")
        try homes.tree("mv", #"x\/y"#, "a/")
        #expect(try homes.run("mv", "a", "a/x\\/y/deeper").code == 1, "below itself")
        #expect(try homes.tree("find", "--type", "folder", home: "other") == "home/a\nhome/a/x\\/y\nhome/a/x\\/y/c\n")
        #expect(try homes.run("rm", "a").code == 2, "others are below it")
        try homes.tree("rm", "-r", "a")
        #expect(try homes.tree("ls", home: "other") == "")
        #expect(try homes.run("rm", "a").code == 3 && homes.run("rm", "-f", "a").code == 0)
        for path in ["home", "prefs/", "inbox"] { #expect(try homes.run("rm", "-r", path).code == 2) }
    }

    @Test(
        "unusable paths are refused before anything is done",
        arguments: ["/", "//", "a//b", #"a\b"#, "home//", String(repeating: "n", count: 256)])
    func paths(path: String) throws {
        let argument = Result { try TreeArgument(path) }
        #expect(throws: Failure.self) { try argument.get() }
        guard case .failure(let error as Failure) = argument else { return }
        #expect(error.code == .usage)
    }

    @Test("a path without a trunk is below home, a slash at its end is no name, and an escaped one is")
    func readPaths() throws {
        #expect(try TreeArgument("a/b").path.description == "home/a/b")
        #expect(try TreeArgument("prefs/a").path.description == "prefs/a")
        #expect(try TreeArgument("homework").path.description == "home/homework")
        #expect(try TreeArgument("home/home").path.description == "home/home")
        #expect(
            try TreeArgument("a/").isContainer && !TreeArgument("a").isContainer && TreeArgument("home").isContainer)
        let escaped = try TreeArgument(#"a\/"#)
        #expect(!escaped.isContainer && escaped.path.name?.text == "a/")
        #expect(try TreeArgument(#"a\\/"#).isContainer)
    }

    @Test("names with slashes, emoji and line feeds come back as they were, and a file gets a name that it can have")
    func names() throws {
        let homes = try TreeHomes()
        for name in ["a\\/b", "\u{1F332} tree", "two\nlines", "%41", ".", "..", "-x"] {
            let outcome = try homes.run("put", "-", "home/" + name, input: name)
            #expect(outcome.code == 0, "\(outcome)")
        }
        let rows = try homes.tree("ls", "--json", home: "other").split(separator: "\n").map {
            try JSONValue(parsing: Array($0.utf8))["name"]?.stringValue ?? ""
        }
        #expect(Set(rows) == ["a/b", "\u{1F332} tree", "two\nlines", "%41", ".", "..", "-x"])
        let copied = try homes.run("get", "-r", "home", homes.path("out"), home: "other")
        #expect(copied.code == 0, "\(copied)")
        for written in ["a%2Fb", "%2E", "%2E%2E"] { #expect(copied.errors.contains("is written as \(written)\n")) }
        #expect(homes.bench.read("out/a%2Fb") == "a\\/b" && homes.bench.read("out/%2E%2E") == "..")
        #expect(homes.bench.read("out/two\nlines") == "two\nlines" && homes.bench.read("out/%41") == "%41")
    }

    @Test("with --offline a change is kept and shown here, queue lists it, and the next command sends it")
    func offline() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "content")
        try homes.bench.stopServer()
        let unreachable = try homes.run("put", homes.path("f"), "f")
        #expect(unreachable.code == 5 && unreachable.errors.contains("nothing was sent"), "\(unreachable)")
        #expect(try homes.tree("put", "--offline", homes.path("f"), "f").contains("is kept here"))
        #expect(try homes.tree("cat", "--offline", "f") == "content")
        #expect(try homes.tree("queue").hasSuffix("create home/f: waits for the server\n"))
        try homes.bench.startServer()
        #expect(try homes.tree("ls", home: "other") == "")
        try homes.tree("pull")
        #expect(try homes.tree("queue") == "")
        #expect(try homes.tree("cat", "f", home: "other") == "content")
    }

    @Test("one command at a time uses the tree's copy; a second one ends with code 7, and watch runs beside it")
    func inUse() throws {
        let homes = try TreeHomes()
        let watch = try homes.start("watch")
        try watch.wait(for: "watching home")
        let second = try homes.start("watch")
        try second.wait(for: "watching home")
        try homes.bench.write("f", "content")
        try homes.tree("put", homes.path("f"), "f", home: "other")
        for process in [watch, second] {
            try process.wait(for: "+ home/f")
            process.signal(SIGINT)
            #expect(try process.finish().code == 0)
        }
        let home = try ProfileHome(["THICKET_HOME": homes.path("home")])
        let key = try home.keyFile("default").key()
        let path = home.folder("default") + "/tree/tree.db"
        try withExtendedLifetime(try StoreFile(path: path, key: key, durability: .program)) { _ in
            let refused = try homes.run("ls")
            #expect(refused.code == 7 && refused.errors.contains("local copy of the tree"), "\(refused)")
        }
        #expect(try homes.tree("ls") == "f\n")
    }

    @Test("a login without keys opens no tree, and the message says where keys come from")
    func withoutKeys() throws {
        let bench = try CommandBench()
        try bench.login()
        let outcome = try bench.run(["tree", "ls"])
        #expect(outcome.code == 2 && outcome.errors.contains("thicket signup"), "\(outcome)")
    }

    @Test("audit shows each record as the server has it next to the path, and the server's side has no name in clear")
    func audit() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "content")
        try homes.tree("put", "-p", homes.path("f"), "canary/secret.md")
        let rows = try homes.tree("audit", "--json").split(separator: "\n").map {
            try JSONValue(parsing: Array($0.utf8))
        }
        #expect(Set(rows.compactMap { $0["path"]?.stringValue }) == ["home/canary", "home/canary/secret.md"])
        for row in rows {
            let server = row["server"]?.serializedText ?? ""
            #expect(server.contains("\"m\":") && !server.contains("canary") && !server.contains("secret"))
        }
        #expect(try homes.tree("audit").contains("  you     home/canary/secret.md: file, 7 B\n"))
    }
}
