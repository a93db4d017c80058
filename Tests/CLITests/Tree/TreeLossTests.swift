import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

@testable import ThicketCLI

/// What a person could lose without noticing it.
@Suite("thicket tree: nothing is lost silently", .blocking)
struct TreeLossTests {
    @Test("of files and folders that are one name in the tree, one is sent, the others are named, also when repeated")
    func twins() throws {
        let homes = try TreeHomes()
        try homes.shell(
            """
            mkdir -p in/Dir in/dir && cd in && echo upper > README.md && echo lower > Readme.md
            echo 1 > Dir/f && echo 2 > dir/f && echo a > straße && echo b > STRASSE
            printf c > $'e\\xcc\\x81' && printf d > $'\\xc3\\xa9' && echo x > other && echo y > OTHER.txt
            """)
        for outcome in ["6 files: 6 sent, 0 as they were\n", "6 files: 0 sent, 6 as they were\n"] {
            let put = try homes.run("put", "-r", homes.path("in"), "in")
            #expect(put.code == 1 && put.output == outcome, "\(put)")
            let left = ["Readme.md", "dir", "straße", "\u{E9}"].map { "in/\($0): it has the same name in the tree as " }
            for text in left { #expect(put.errors.contains(text), "\(text)") }
            #expect(put.errors.split(separator: "\n").count == left.count + 1, "\(put)")
        }
        #expect(try homes.tree("cat", "in/README.md", "in/Dir/f", "in/STRASSE") == "upper\n1\nb\n")
        #expect(try homes.tree("find", "--type", "file").split(separator: "\n").count == 6)
    }

    @Test("the file whose name the tree has stays that node, also when another one comes before it")
    func laterTwin() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir in && echo lower > in/readme.md")
        try homes.tree("put", "-r", homes.path("in"), "in")
        try homes.shell("echo upper > in/README.md")
        for _ in 0..<2 {
            let put = try homes.run("put", "-r", homes.path("in"), "in")
            #expect(put.code == 1 && put.output == "1 file: 0 sent, 1 as they were\n", "\(put)")
            #expect(put.errors.contains("in/README.md: it has the same name in the tree as"), "\(put)")
        }
        #expect(try homes.tree("cat", "in/readme.md") == "lower\n")
    }

    @Test("several files of one name, put into one container, do not replace each other")
    func sources() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir a b && echo 1 > a/f && echo 2 > b/F && echo 3 > g")
        try homes.tree("mkdir", "to")
        let put = try homes.run("put", homes.path("a/f"), homes.path("b/F"), homes.path("g"), "to/")
        #expect(put.code == 1 && put.output == "2 files: 2 sent, 0 as they were\n", "\(put)")
        #expect(put.errors.contains("b/F: it has the same name in the tree as \(homes.path("a/f"))"), "\(put)")
        #expect(try homes.tree("cat", "to/f", "to/g") == "1\n3\n")
    }

    @Test("import leaves out and names a file that would be the node of another file of the folder")
    func importedTwins() throws {
        let homes = try TreeHomes()
        try homes.bench.write("f", "one")
        try homes.tree("put", homes.path("f"), "plan.md")
        try homes.tree("export", homes.path("out"))
        try homes.shell("echo two > out/home/PLAN.md")
        let read = try homes.run("import", homes.path("out"))
        #expect(read.code == 1 && read.output == "1 file: 0 sent, 1 as they were\n", "\(read)")
        #expect(read.errors.contains("home/PLAN.md: it has the same name in the tree as"), "\(read)")
        #expect(try homes.tree("cat", "plan.md") == "one")
    }

    @Test("a content that the server has lost is named by get, export and pull, soon, and all others are written")
    func lostBlob() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir in && for i in 1 2 3; do head -c 20000 /dev/urandom > in/f$i; done")
        try homes.tree("put", "-r", homes.path("in"), "in")
        try homes.shell("f=$(find data/blobs -type f -size +0 | sort | head -1) && mv $f kept && echo $f > place")
        let reason = "the server has lost this content"
        let copy = try homes.run("get", "-r", "in", homes.path("copy"), home: "other")
        #expect(copy.code == 1 && copy.output == "2 files: 2 written, 0 the same already\n", "\(copy)")
        let name = try #require(["f1", "f2", "f3"].first { !homes.bench.exists("copy/\($0)") })
        #expect(copy.errors.contains("home/in/\(name): ") && copy.errors.contains(reason), "\(copy)")
        let export = try homes.run("export", homes.path("out"), home: "other")
        #expect(export.code == 1 && export.output.hasPrefix("2 files: 2 written"), "\(export)")
        #expect(export.errors.contains("home/in/\(name): ") && export.errors.contains(reason), "\(export)")
        let pull = try homes.run("pull", "--content", "in", home: "other")
        #expect(pull.code == 1 && pull.output.hasPrefix("the contents of 2 files are"), "\(pull)")
        let get = try homes.run("get", "in/\(name)", homes.path("single"), home: "other")
        #expect(get.code == 1 && get.errors.contains(reason) && get.errors.contains("--offline"), "\(get)")
        #expect(!homes.bench.exists("single"))
        #expect(try homes.metric("thicket_blob_refused_total{reason=\"lost\"}") == 4, "each asked once")
        try homes.shell("mv kept $(cat place)")
        try homes.tree("get", "-r", "in", homes.path("copy"), home: "other")
        try homes.shell("diff -r in copy")
    }

    @Test("an older content that was pulled to stay is evictable once the newer one was pulled, or its node is gone")
    func outdatedPins() throws {
        let homes = try TreeHomes()
        let sealed = { homes.bytes(in: homes.path("other")) }
        for turn in 0..<3 {
            try homes.makeFile("large", mebibytes: 28)
            try homes.tree("put", homes.path("large"), "large")
            try homes.tree("pull", "--content", "large", home: "other")
            #expect((28 << 20)..<(40 << 20) ~= sealed(), "\(turn)")
        }
        try homes.tree("rm", "large")
        try homes.tree("pull", "--content", home: "other")
        #expect(sealed() < 12 << 20, "the file is larger than the cache")
    }

    @Test("two machines that put one folder at once end with one folder and each file once")
    func atOnce() throws {
        let homes = try TreeHomes()
        try homes.shell(
            """
            mkdir -p one/a/b && for i in $(seq 40); do echo "file $i" > one/a/f$i; echo "below $i" > one/a/b/g$i; done
            cp -r one two
            """)
        let first = try homes.start("put", "-r", homes.path("one"), "many")
        let second = try homes.start("put", "-r", homes.path("two"), "many", home: "other")
        for outcome in [try first.finish(), try second.finish()] {
            #expect(outcome.code == 0 && outcome.output.hasPrefix("80 files: "), "\(outcome)")
        }
        let paths = try homes.tree("find").split(separator: "\n").map(String.init)
        var wanted = ["home/many", "home/many/a", "home/many/a/b"]
        for number in 1...40 { wanted += ["home/many/a/f\(number)", "home/many/a/b/g\(number)"] }
        #expect(Set(paths) == Set(wanted), "\(Set(paths).symmetricDifference(wanted))")
    }

    @Test("a folder that was put offline becomes the one that another machine has made meanwhile, and nothing is lost")
    func offlineFolder() throws {
        let homes = try TreeHomes()
        try homes.shell("mkdir -p one/sub two/sub && echo 1 > one/sub/f && echo 2 > two/sub/f && echo x > two/sub/g")
        try homes.tree("pull", home: "other")
        try homes.tree("put", "-r", "--offline", homes.path("two"), "many", home: "other")
        try homes.tree("put", "-r", homes.path("one"), "many")
        let pull = try homes.run("pull", home: "other")
        #expect(pull.code == 0, "\(pull)")
        #expect(pull.errors.contains("home/many/sub/f: another device has made"), "\(pull)")
        #expect(!pull.errors.contains("home/many:") && !pull.errors.contains("home/many/sub:"), "\(pull)")
        #expect(
            try homes.tree("find")
                == "home/many\nhome/many/sub\nhome/many/sub/f\nhome/many/sub/f 2\nhome/many/sub/g\n")
        #expect(try homes.tree("cat", "many/sub/f", "many/sub/f 2", "many/sub/g") == "1\n2\nx\n")
    }
}
