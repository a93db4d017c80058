import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// Changes that two machines make at the same time, and those that wait.
@Suite("thicket tree: queue", .blocking)
struct TreeQueueTests {
    /// Two machines have changed one file while the second was offline, and the second one has sent its change.
    private func conflict() throws -> TreeHomes {
        let homes = try TreeHomes()
        for (name, text) in [("base", "base"), ("mine", "mine"), ("theirs", "theirs")] {
            try homes.bench.write(name, text)
        }
        try homes.tree("put", homes.path("base"), "f")
        try homes.tree("pull", home: "other")
        try homes.tree("put", "--offline", homes.path("mine"), "f", home: "other")
        try homes.tree("put", homes.path("theirs"), "f")
        let pulled = try homes.run("pull", home: "other")
        #expect(
            pulled.code == 4 && pulled.errors.contains("home/f: another device changed the content too"), "\(pulled)")
        return homes
    }

    @Test("a conflict of contents is named by each command with code 4, and another put does not hide it")
    func named() throws {
        let homes = try conflict()
        let listed = try homes.run("ls", home: "other")
        #expect(listed.code == 4 && listed.output == "f\n" && listed.errors.contains("thicket tree queue"), "\(listed)")
        #expect(try homes.run("put", homes.path("base"), "f", home: "other").code == 4)
        let row = try JSONValue(parsing: Array(try homes.tree("queue", "--json", home: "other").utf8))
        #expect(row["state"]?.stringValue == "conflict" && row["path"]?.stringValue == "home/f")
        #expect(try homes.tree("cat", "f") == "theirs")
        #expect(try homes.run("cat", "f", home: "other").output == "mine")
    }

    @Test("queue retry keeps this machine's content, and queue discard the other one's")
    func resolved() throws {
        let kept = try conflict()
        #expect(try kept.tree("queue", "retry", home: "other") == "home/f is confirmed\n")
        #expect(try kept.tree("cat", "f") == "mine" && kept.tree("queue", home: "other") == "")
        let dropped = try conflict()
        #expect(try dropped.tree("queue", "discard", home: "other").hasSuffix("of home/f is dropped\n"))
        #expect(try dropped.tree("cat", "f", home: "other") == "theirs")
        #expect(try dropped.tree("cat", "f") == "theirs" && dropped.tree("queue", home: "other") == "")
        for words in [["discard"], ["retry"], ["discard", "99"]] {
            #expect(try dropped.bench.run(["tree", "queue"] + words, home: "other").code == 3, "\(words)")
        }
        #expect(try dropped.run("queue", "discard", "x", home: "other").code == 2)
    }

    @Test("a change of a node that another machine removed waits, and retry creates the node again")
    func removedElsewhere() throws {
        let homes = try TreeHomes()
        try homes.bench.write("one", "one")
        try homes.bench.write("two", "two")
        try homes.tree("put", homes.path("one"), "f")
        try homes.tree("pull", home: "other")
        try homes.tree("put", "--offline", homes.path("two"), "f", home: "other")
        try homes.tree("rm", "f")
        #expect(try homes.run("pull", home: "other").code == 4)
        #expect(try homes.tree("ls") == "")
        try homes.tree("queue", "retry", home: "other")
        #expect(try homes.tree("cat", "f") == "two")
    }

    @Test("of two nodes of one name, made apart, both stay, and the command reports the other name")
    func names() throws {
        let homes = try TreeHomes()
        try homes.bench.write("one", "one")
        try homes.bench.write("two", "two")
        try homes.tree("put", "--offline", homes.path("two"), "f.txt", home: "other")
        try homes.tree("put", homes.path("one"), "f.txt")
        let pulled = try homes.run("pull", home: "other")
        #expect(pulled.code == 0 && pulled.errors.contains("home/f.txt: another device has made"), "\(pulled)")
        #expect(pulled.errors.contains("yours is home/f 2.txt"), "\(pulled)")
        #expect(try homes.tree("cat", "f.txt", "f 2.txt") == "onetwo")
    }

    @Test("watch prints what another machine does, as lines and as JSON, below its path only")
    func watch() throws {
        let homes = try TreeHomes()
        try homes.bench.write("one", "one")
        try homes.bench.write("two", "two")
        try homes.tree("put", "-p", homes.path("one"), "a/before")
        let lines = try homes.start("watch", "a")
        let json = try homes.start("watch", "--json")
        for process in [lines, json] { try process.wait(for: "watching home") }
        try homes.tree("put", homes.path("one"), "a/f", home: "other")
        try homes.tree("put", homes.path("two"), "a/f", home: "other")
        try homes.tree("mv", "a/f", "a/g", home: "other")
        try homes.tree("put", homes.path("one"), "elsewhere", home: "other")
        try homes.tree("rm", "a/g", home: "other")
        try lines.wait(for: "- home/a/g")
        try json.wait(for: "\"removed\"")
        for process in [lines, json] { process.signal(SIGINT) }
        let outcome = try lines.finish()
        #expect(outcome.code == 0)
        #expect(outcome.output == "+ home/a/f\n~ home/a/f\n> home/a/f -> home/a/g\n- home/a/g\n", "\(outcome)")
        let events = try json.finish().output.split(separator: "\n").compactMap {
            (try? JSONValue(parsing: Array($0.utf8)))?["event"]?.stringValue
        }
        #expect(events == ["new", "modified", "moved", "new", "removed"])
    }

    @Test("contents that were pulled are read without a server, and others are reported as not here")
    func pulledContents() throws {
        let homes = try TreeHomes()
        // Larger than the cache: what is not to stay is evicted at once.
        try homes.shell("head -c 27000000 /dev/urandom > large && head -c 20000 large > large2")
        try homes.tree("put", homes.path("large"), "large")
        try homes.tree("put", homes.path("large2"), "large2")
        #expect(
            try homes.tree("pull", "--content", "large", home: "other")
                == "the contents of 1 file are on this machine\nhome/large: 1 node, 25.7 MiB; up to date\n")
        try homes.tree("get", "large", homes.path("first"), home: "other")
        try homes.bench.stopServer()
        try homes.tree("get", "--offline", "large", homes.path("copy"), home: "other")
        try homes.shell("cmp large copy")
        let missing = try homes.run("get", "--offline", "large2", homes.path("copy2"), home: "other")
        #expect(missing.code == 5 && missing.errors.contains("is not on this machine"), "\(missing)")
        #expect(!homes.bench.exists("copy2"))
    }

    @Test("a pulled content is here with all its sections: it is exported without a server")
    func pulledSections() throws {
        let homes = try TreeHomes()
        // The thumbnail fills more than the first chunk, which each part of a content has.
        var extras = NodeExtras()
        extras.thumbnail = [UInt8](repeating: 7, count: 150_000)
        try homes.shell("mkdir -p plain/home && head -c 300000 /dev/urandom > plain/home/f")
        try homes.bench.write("plain/thicket-tree.json", #"{"format":1}"#)
        try homes.bench.write("plain/home/f%meta", String(decoding: extras.json, as: UTF8.self))
        try homes.tree("import", homes.path("plain"))
        try homes.tree("pull", "--content", home: "other")
        try homes.bench.stopServer()
        try homes.tree("export", "--offline", homes.path("out"), home: "other")
        try homes.shell("cmp plain/home/f out/home/f && cmp plain/home/f%meta out/home/f%meta")
    }

    @Test("status shows changes of the tree that wait, and logout does not give them up unless it is told to")
    func logout() throws {
        let homes = try TreeHomes()
        #expect(try !homes.bench.good(["status"]).contains("tree  "))
        try homes.bench.write("f", "content")
        try homes.tree("put", "--offline", homes.path("f"), "f")
        #expect(try homes.bench.good(["status"]).contains("tree     a copy is here, 1 not sent"))
        #expect(try homes.bench.good(["status", "--json"]).contains(#""tree":{"unsent":1,"held":0}"#))
        let refused = try homes.bench.run(["logout"])
        #expect(refused.code == 1 && refused.errors.contains("in the tree"), "\(refused)")
        #expect(try homes.tree("cat", "--offline", "f") == "content")
        try homes.tree("pull")
        try homes.bench.good(["logout"])
        #expect(try homes.tree("cat", "f", home: "other") == "content")
    }

    @Test("a locked profile opens no tree, and an unlocked one does")
    func locked() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "content")
        try homes.tree("put", homes.path("f"), "f")
        let passphrase = ["THICKET_PASSPHRASE": "lock", "XDG_RUNTIME_DIR": homes.bench.place.path]
        try homes.bench.good(["lock"], variables: passphrase)
        #expect(try homes.bench.run(["tree", "cat", "--offline", "f"], variables: ["XDG_RUNTIME_DIR": ""]).code == 8)
        try homes.bench.good(["unlock"], variables: passphrase)
        #expect(try homes.bench.good(["tree", "cat", "--offline", "f"], variables: passphrase) == "content")
    }

    @Test("a content above the quota is refused with code 4, nothing is changed or called sent, and the rest is sent")
    func quota() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir in && head -c 600000 /dev/urandom > in/large && echo small > in/small")
        try homes.bench.write("before", "before")
        try homes.tree("put", homes.path("before"), "f")
        let note = try homes.bench.run(["onions", "new"], input: "Title\ntext")
        #expect(note.code == 0)
        try homes.bench.stopServer()
        try homes.bench.startServer(["--blob-user-max", "500KB"])
        let refused = try homes.run("put", homes.path("in/large"), "f")
        #expect(refused.code == 4 && refused.output.isEmpty && refused.errors.contains("413"), "\(refused)")
        #expect(refused.errors.contains("Nothing was changed."), "\(refused)")
        #expect(try homes.tree("cat", "f") == "before" && homes.tree("queue") == "")
        let json = try homes.run("put", "--json", homes.path("in/large"), "f")
        let line = try JSONValue(parsing: Array(json.output.utf8))
        #expect(json.code == 4 && line["outcome"]?.stringValue == "refused", "\(json)")
        #expect(line["path"]?.stringValue == "home/f" && line["reason"]?.stringValue?.contains("413") == true)
        let folder = try homes.run("put", "-r", homes.path("in"), "in")
        #expect(folder.code == 4 && folder.output == "1 file: 1 sent, 0 as they were\n", "\(folder)")
        #expect(try homes.tree("find", "--type", "file", home: "other") == "home/f\nhome/in/small\n")
        let attached = try homes.bench.run(["onions", "attach", "1", homes.path("in/large")])
        #expect(attached.code == 4 && attached.output.isEmpty, "\(attached)")
        #expect(try homes.bench.good(["onions", "attach", "1"]) == "")
    }

    @Test("a change that was made offline and is refused later stays with its content, and retry sends it")
    func refusedLater() throws {
        let homes = try TreeHomes()
        try homes.shell("head -c 600000 /dev/urandom > large && cp large gone")
        try homes.tree("put", "--offline", homes.path("gone"), "f")
        unlink(homes.path("gone"))
        try homes.bench.stopServer()
        try homes.bench.startServer(["--blob-user-max", "500KB"])
        let pulled = try homes.run("pull")
        #expect(pulled.code == 4 && pulled.errors.contains("home/f: the server refused it"), "\(pulled)")
        #expect(try homes.run("ls").code == 4, "each command names it")
        // No other command gives up what may be the only copy.
        #expect(try homes.run("mv", "f", "f").code == 4 && homes.run("put", homes.path("large"), "f").code == 4)
        #expect(try homes.run("get", "f", homes.path("copy")).code == 4)
        try homes.shell("cmp large copy")
        try homes.bench.stopServer()
        try homes.bench.startServer()
        #expect(try homes.tree("queue", "retry") == "home/f is confirmed\n")
        try homes.tree("get", "f", homes.path("copy2"), home: "other")
        try homes.shell("cmp large copy2")
    }

    @Test("a change whose content is gone from this machine waits with this reason, in later commands too")
    func goneContent() throws {
        let homes = try TreeHomes()
        try homes.shell("head -c 600000 /dev/urandom > large")
        try homes.tree("put", "--offline", homes.path("large"), "f")
        try homes.shell("rm \"$(find home -size +500k -type f -path '*.files/*')\"")
        let pulled = try homes.run("pull")
        #expect(pulled.code == 4 && pulled.errors.contains("its content is not on this machine any more"), "\(pulled)")
        #expect(try homes.tree("queue").contains("create home/f: its content is not on this machine any more"))
        let row = try JSONValue(parsing: Array(try homes.tree("queue", "--json").utf8))
        #expect(row["state"]?.stringValue == "content-unavailable")
        try homes.tree("queue", "discard")
        try homes.tree("put", homes.path("large"), "f")
        #expect(try homes.tree("queue") == "")
        try homes.tree("get", "f", homes.path("copy"), home: "other")
        try homes.shell("cmp large copy")
    }

    @Test("a server that stops answering ends commands in time with code 5, and a change that was made is kept")
    func silent() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "content")
        try homes.tree("ls")
        homes.bench.server.process.signal(SIGSTOP)
        for words in [["ls"], ["put", homes.path("f"), "f"], ["get", "f", homes.path("copy")], ["mkdir", "a"]] {
            let outcome = try homes.bench.run(["tree"] + words + ["--timeout", "2s"])
            #expect(outcome.code == 5 && outcome.errors.contains("did not answer within 2 s"), "\(words) \(outcome)")
            #expect(outcome.output.isEmpty, "nothing is called done")
        }
        homes.bench.server.process.signal(SIGCONT)
        #expect(try homes.tree("ls") == "" && homes.tree("queue") == "")
    }

    @Test("nothing readable of names and contents is in the profile's folder, also of what waits")
    func sealedHere() throws {
        let homes = try TreeHomes()
        try homes.shell("yes canary-content | head -c 100000 > large && echo canary-content > small")
        try homes.tree("put", homes.path("large"), "canary-name")
        try homes.tree("put", "--offline", homes.path("large"), "canary-waits")
        try homes.tree("put", "--offline", homes.path("small"), "canary-small")
        let found = try ChildProcess.run(
            ["/bin/grep", "-raq", "canary", homes.path("home")], input: "", variables: [:])
        #expect(found.code == 1, "\(found)")
    }
}
