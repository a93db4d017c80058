import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Import, export and mirror, as processes against a real server.
@Suite("thicket: folders", .blocking)
struct FolderCommandTests {
    @Test("imported files are exported unchanged, and a file that cannot be imported is named")
    func roundTrip() throws {
        let bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("in"), 0o700)
        let files = [
            ("my notes.md", "# Ä\r\nno end"), ("plan.json", "{\n  \"a\": 1.50\n}\n"), ("100%.txt", "x\n"),
            ("empty", ""), ("=", "sign\n"),
        ]
        for (name, text) in files { try bench.write("in/" + name, text) }
        #expect(try bench.good(["import", "docs", bench.path("in")]).contains("5 files read"))
        try bench.good(["export", "docs", bench.path("out")])
        for (name, text) in files where name != "=" {
            #expect(bench.read("out/" + name) == text, "\(name)")
        }
        // The second time nothing is left to do, also from the exported files.
        #expect(try bench.good(["import", "docs", bench.path("out")]).contains("0 new or different"))
        #expect(try bench.good(["export", "docs", bench.path("out")]).contains("0 written"))

        try bench.write("in/broken.json", "{")
        try bench.write("in/plan.json", #"{"a": 2}"#)
        let partly = try bench.run(["import", "docs", bench.path("in")])
        #expect(partly.code == 1 && partly.errors.contains("broken.json: it is not JSON"), "\(partly)")
        #expect(try bench.good(["get", "docs", "plan", "--path", "a"]) == "2\n")

        let kept = try bench.run(["export", "docs", bench.path("out")])
        #expect(
            kept.code == 1 && kept.errors.contains("plan.json") && bench.read("out/plan.json")?.contains("1.50") == true
        )
        try bench.good(["export", "--force", "docs", bench.path("out")])
        #expect(bench.read("out/plan.json") == "{\n  \"a\": 2\n}\n")
        #expect(try bench.run(["import", "docs", bench.path("none")]).code == 3)
    }

    @Test("mirror carries changes and deletions both ways while it runs")
    func live() throws {
        let bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("m"), 0o700)
        try bench.write("m/a.txt", "first\n")
        try bench.good(["put", "docs", "b", #"{"x":1}"#])
        let mirror = try bench.start(["mirror", bench.path("m"), "docs"])
        try mirror.wait(for: "mirroring")
        #expect(bench.read("m/b.json") == "{\n  \"x\": 1\n}\n")
        // "Sent" is reported when the server has it.
        func arrives(_ text: String) -> Bool {
            (try? bench.run(["get", "docs", "a.txt", "--path", "text"]))?.output == text
        }
        try mirror.wait(for: "sent a.txt")
        #expect(arrives("first\n"))

        try bench.write("m/a.txt", "first\nsecond\n")
        try mirror.wait(for: "sent a.txt", times: 2)
        #expect(arrives("first\nsecond\n"))
        try bench.good(["put", "docs", "b", #"{"x":2}"#])
        try mirror.wait(for: "received b.json", times: 2)
        #expect(bench.read("m/b.json") == "{\n  \"x\": 2\n}\n")

        unlink(bench.path("m/b.json"))
        try mirror.wait(for: "removed b.json from the bucket")
        try bench.good(["rm", "docs", "a.txt"])
        try mirror.wait(for: "removed a.txt from the folder")
        #expect(!bench.exists("m/a.txt"))
        mirror.signal(SIGINT)
        #expect(try mirror.finish().code == 0)
        #expect(try bench.good(["ls", "docs"]).isEmpty)
    }

    @Test("two folders mirror one bucket while programs write into both; every line arrives in both")
    func twoFolders() throws {
        let bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("m"), 0o700)
        mkdir(bench.path("n"), 0o700)
        try bench.write("m/log.txt", "start\n")
        let one = try bench.start(["mirror", bench.path("m"), "docs"])
        try one.wait(for: "sent log.txt")
        let two = try bench.start(["mirror", bench.path("n"), "docs"])
        try two.wait(for: "received log.txt")
        // A command between the lines gives the mirrors time to be in the middle of things.
        var wanted: Set<String> = ["start"]
        for number in 0..<12 {
            for folder in ["m", "n"] {
                let line = "\(folder)\(number)"
                let file = open(bench.path("\(folder)/log.txt"), O_WRONLY | O_APPEND | O_CLOEXEC)
                #expect(write(file, line + "\n", line.utf8.count + 1) == line.utf8.count + 1)
                close(file)
                wanted.insert(line)
            }
            try bench.good(["put", "docs", "beat", #"{"n":\#(number)}"#])
        }
        for mirror in [one, two] {
            mirror.signal(SIGINT)
            #expect(try mirror.finish().code == 0)
        }
        for folder in ["m", "n", "m"] { try bench.good(["mirror", bench.path(folder), "docs", "--once"]) }
        let text: String = try #require(bench.read("m/log.txt"))
        #expect(bench.read("n/log.txt") == text)
        let lines: [String] = text.split(separator: "\n").map(String.init)
        #expect(Set(lines) == wanted && lines.count == wanted.count, "\(text)")
    }

    @Test("changes made while no mirror ran are merged; nothing of either side is lost")
    func between() throws {
        let bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("m"), 0o700)
        for name in ["both", "mine", "theirs", "gone-here", "gone-there", "fought-1", "fought-2"] {
            try bench.write("m/\(name).txt", "one two three\n")
        }
        let once = ["mirror", bench.path("m"), "docs", "--once"]
        try bench.good(once)
        // In the folder.
        try bench.write("m/both.txt", "ONE two three\n")
        try bench.write("m/mine.txt", "mine\n")
        unlink(bench.path("m/gone-here.txt"))
        unlink(bench.path("m/fought-1.txt"))
        try bench.write("m/fought-2.txt", "edited here\n")
        // In the bucket.
        try bench.good(["put", "docs", "both.txt", #"{"text":"one two THREE\n","tag":1}"#])
        try bench.good(["put", "docs", "theirs.txt", #"{"text":"theirs\n"}"#])
        try bench.good(["put", "docs", "fought-1.txt", #"{"text":"edited there\n"}"#])
        try bench.good(["rm", "docs", "gone-there.txt", "fought-2.txt"])
        try bench.good(once)
        #expect(bench.read("m/both.txt") == "ONE two THREE\n")
        #expect(try bench.good(["get", "docs", "both.txt", "--json"]) == #"{"text":"ONE two THREE\n","tag":1}"# + "\n")
        #expect(try bench.good(["get", "docs", "mine.txt", "--path", "text"]) == "mine\n")
        #expect(bench.read("m/theirs.txt") == "theirs\n")
        #expect(try bench.run(["get", "docs", "gone-here.txt"]).code == 3)
        #expect(!bench.exists("m/gone-there.txt"))
        #expect(bench.read("m/fought-1.txt") == "edited there\n")
        #expect(try bench.good(["get", "docs", "fought-2.txt", "--path", "text"]) == "edited here\n")
        #expect(try bench.good(once).isEmpty)
    }

    @Test("a file and an object that have only the name in common are both kept")
    func outsiders() throws {
        let bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("m"), 0o700)
        try bench.write("m/a.txt", "from the folder\n")
        try bench.good(["put", "docs", "a.txt", #"{"text":"from the bucket\n"}"#])
        try bench.good(["mirror", bench.path("m"), "docs", "--once"])
        #expect(bench.read("m/a.txt") == "from the bucket\n")
        #expect(bench.read("m/a.conflict-1.txt") == "from the folder\n")
        #expect(try bench.good(["ls", "docs"]) == "a.conflict-1.txt  v1\na.txt             v1\n")
    }

    @Test("a mirror continues while the server is away, and sends later")
    func offline() throws {
        let bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("m"), 0o700)
        let mirror = try bench.start(["mirror", bench.path("m"), "docs"])
        try mirror.wait(for: "mirroring")
        try bench.stopServer()
        try mirror.wait(for: "offline (")
        try bench.write("m/late.txt", "late\n")
        try mirror.wait(for: "kept late.txt")
        mirror.signal(SIGINT)
        #expect(try mirror.finish().code == 0)
        // Started without a server it continues from what it remembers.
        let again = try bench.start(["mirror", bench.path("m"), "docs"])
        try again.wait(for: "mirroring")
        try bench.startServer()
        try again.wait(for: "connected")
        again.signal(SIGINT)
        #expect(try again.finish().code == 0)
        try bench.good(["mirror", bench.path("m"), "docs", "--once"])
        #expect(try bench.good(["get", "docs", "late.txt", "--path", "text"]) == "late\n")
    }

    @Test("a file that cannot be mirrored is left alone and named; another bucket, user or mirror is refused")
    func refusals() throws {
        let bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("m"), 0o700)
        try bench.write("m/half.json", "{ half")
        let once = try bench.run(["mirror", bench.path("m"), "docs", "--once"])
        #expect(once.code == 1 && once.errors.contains("half.json is left alone"), "\(once)")
        #expect(bench.read("m/half.json") == "{ half")
        #expect(try bench.run(["mirror", bench.path("m"), "other", "--once"]).code == 2)
        try bench.write("m/half.json", #"{"whole":true}"#)
        try bench.good(["mirror", bench.path("m"), "docs", "--once"])
        let bob = try bench.token(user: "bob@example.com")
        let outsider = try bench.run(
            ["mirror", bench.path("m"), "docs", "--once"], variables: ["THICKET_TOKEN": bob])
        #expect(outsider.code == 6 && outsider.errors.contains("another user"), "\(outsider)")
        #expect(bench.read("m/half.json") == #"{"whole":true}"#)
        let running = try bench.start(["mirror", bench.path("m"), "docs"])
        try running.wait(for: "mirroring")
        #expect(try bench.run(["mirror", bench.path("m"), "docs", "--once"]).code == 7)
    }

    @Test("a recorded session is replayed and compared; the exit code reports a difference or a missing file")
    func replay() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.write(
            "good.json",
            #"{"startContent":"","endContent":"héllo","txns":[{"patches":[[0,0,"hllo"]]},{"patches":[[1,0,"é"]]}]}"#)
        let good = try bench.run(["replay", "--clients", "3", bench.path("good.json")])
        #expect(
            good.code == 0 && good.output.hasSuffix("\nMATCH\n") && good.output.contains("2 edits by 3 clients"),
            "\(good)")
        try bench.write("bad.json", #"{"startContent":"","endContent":"b","txns":[{"patches":[[0,0,"a"]]}]}"#)
        let bad = try bench.run(["replay", bench.path("bad.json")])
        #expect(
            bad.code == 1 && !bad.output.contains("MATCH") && bad.output.contains("differs at code point 0"), "\(bad)")
        #expect(try bench.run(["replay", bench.path("none.json")]).code == 3)
    }

    @Test("recordings of several users are replayed into a sealed bucket, several in one call, and repeatedly")
    func sealedReplay() throws {
        let bench = try CommandBench()
        try bench.login()
        let trace =
            #"{"kind":"concurrent","endContent":"Hello big, wide world!","numAgents":2,"txns":["#
            + #"{"parents":[],"numChildren":2,"agent":0,"patches":[[0,0,"Hello world"]]},"#
            + #"{"parents":[0],"numChildren":1,"agent":1,"patches":[[11,0,"!"]]},"#
            + #"{"parents":[0],"numChildren":1,"agent":0,"patches":[[6,0,"big, "]]},"#
            + #"{"parents":[1,2],"numChildren":0,"agent":1,"patches":[[11,0,"wide "]]}]}"#
        try bench.write("two.json", trace)
        try bench.write("other.json", trace.replacing("!", with: "?"))
        try bench.write("bad.json", trace.replacing("wide world!\"", with: "wide world?\""))
        let (two, other) = (bench.path("two.json"), bench.path("other.json"))
        for _ in 0..<2 {
            let good = try bench.run(["replay", "--sealed", two, other])
            #expect(good.code == 0 && good.output.hasSuffix("\nMATCH\n"), "\(good)")
            #expect(good.output.split(separator: "\n").count == 3 && good.errors.isEmpty, "\(good)")
        }
        let bad = try bench.run(["replay", "--sealed", bench.path("bad.json")])
        #expect(bad.code == 1 && bad.output.contains("differs at code point 21"), "\(bad)")
        #expect(try bench.run(["replay", "--sealed", "--bucket", "mine", two]).code == 0)
        let gone = try bench.run(["replay", "--sealed", "--bucket", "mine", two])
        #expect(gone.code == 4 && gone.errors.contains("whose secret is lost"), "\(gone)")
    }
}
