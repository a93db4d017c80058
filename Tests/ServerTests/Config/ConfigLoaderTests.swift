import Testing

@testable import ThicketServer

@Suite("Settings")
struct ConfigLoaderTests {
    private func load(
        flags: [(name: String, value: String)] = [], environment: [String: String] = [:], file: String? = nil
    ) throws(ConfigError) -> LoadedConfig {
        try ConfigLoader().load(
            flags: flags, environment: environment,
            file: file.map { (text: String) in ConfigLoader.File(path: "t.conf", text: text) })
    }

    private func problems(
        flags: [(name: String, value: String)] = [], environment: [String: String] = [:], file: String? = nil
    ) -> [String] {
        do throws(ConfigError) {
            _ = try load(flags: flags, environment: environment, file: file)
            return []
        } catch {
            return error.problems
        }
    }

    @Test(
        "flags override the environment, the environment the file, the file the defaults",
        arguments: [
            (nil, nil, nil, 60, "default"), (nil, nil, "7s", 7, "t.conf:1"), (nil, "8s", "7s", 8, "environment"),
            ("9s", "8s", "7s", 9, "flag"), ("9s", nil, "7s", 9, "flag"), (nil, "8s", nil, 8, "environment"),
        ] as [(String?, String?, String?, Int, String)])
    func precedence(flag: String?, variable: String?, line: String?, seconds: Int, source: String) throws {
        let loaded: LoadedConfig = try load(
            flags: flag.map { [("idle-timeout", $0)] } ?? [],
            environment: variable.map { ["THICKET_IDLE_TIMEOUT": $0] } ?? [:], file: line.map { "idle-timeout = \($0)" }
        )
        #expect(loaded.config.idleTimeout == .seconds(seconds))
        let shown: String? = loaded.sources.first { $0.setting.name == "idle-timeout" }?.source.description
        #expect(shown == source)
        #expect(loaded.text.contains("idle-timeout = \(seconds == 60 ? "1m" : "\(seconds)s")"))
    }

    @Test(
        "durations carry units",
        arguments: [
            ("250ms", 250), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000),
            ("1_000 ms", 1_000),
            ("0s", 0), ("90S", 90_000),
        ] as [(String, Int64)])
    func durations(text: String, milliseconds: Int64) throws {
        #expect(try SettingValue.milliseconds(text) == milliseconds)
        #expect(try SettingValue.milliseconds(SettingValue.text(milliseconds: milliseconds)) == milliseconds)
    }

    @Test(
        "size units with an i are powers of 1024, those without are powers of 1000",
        arguments: [
            ("512B", 512), ("64KiB", 65_536), ("16MiB", 16 << 20), ("1GiB", 1 << 30), ("1kB", 1_000),
            ("2MB", 2_000_000),
            ("1 GB", 1_000_000_000), ("1mib", 1 << 20),
        ] as [(String, Int64)])
    func sizes(text: String, bytes: Int64) throws {
        #expect(try SettingValue.bytes(text) == bytes)
        #expect(try SettingValue.bytes(SettingValue.text(bytes: bytes)) == bytes)
    }

    @Test(
        "a value that is invalid for its kind is refused with the reason",
        arguments: [
            ("idle-timeout", "30", "has no unit"), ("idle-timeout", "30x", "has the unknown unit 'x'"),
            ("idle-timeout", "", "not a number with a unit"), ("idle-timeout", "-5s", "not a number with a unit"),
            ("idle-timeout", "1.5s", "has the unknown unit '.5s'"), ("idle-timeout", "1s", "outside 5s…1h"),
            ("idle-timeout", "99999999999999999d", "too large"), ("document-bytes-max", "16", "has no unit"),
            ("document-bytes-max", "16Mb ", "has the unknown unit 'Mb '"),
            ("document-bytes-max", "1B", "outside 1KiB…64MiB"),
            ("connections-max", "many", "not a whole number"), ("connections-max", "0", "outside 1…1000000"),
            ("connections-max", "99999999999999999999", "not a whole number"),
            ("log-level", "loud", "not one of debug"),
            ("metrics", "maybe", "neither on nor off"), ("listen", "8000", "not HOST:PORT"),
            ("listen", "::1:80", "needs brackets"), ("listen", "a:65536", "not a port"),
            ("listen", ":80", "host is missing"), ("listen", "a:", "not a port"), ("data", "", "is empty"),
        ])
    func badValues(name: String, value: String, part: String) {
        let found: [String] = problems(flags: [(name, value)])
        #expect(found.count == 1 && found[0].hasPrefix("--\(name): ") && found[0].contains(part), "\(found)")
    }

    @Test("addresses are parsed with host names and with bracketed IPv6")
    func addresses() throws {
        #expect(try ListenAddress("[::1]:80") == ListenAddress(host: "::1", port: 80))
        #expect(try ListenAddress("[::1]:80").description == "[::1]:80")
        #expect(try ListenAddress("localhost:0").description == "localhost:0")
    }

    @Test(
        "an unknown name, a malformed line or a duplicate is an error; a near miss suggests the known name",
        arguments: [
            ("lisen = a:1", "t.conf:1: unknown setting 'lisen'; did you mean 'listen'?"),
            ("zzzzz = 1", "t.conf:1: unknown setting 'zzzzz'"),
            ("listen", "t.conf:1: this is not 'name = value'"),
            ("= 3", "t.conf:1: this is not 'name = value'"),
            ("data = \"a\" b", "t.conf:1: this is not 'name = value'"),
            ("data = a\ndata = b", "t.conf:2: data was already set on line 1"),
        ])
    func badFile(text: String, problem: String) {
        #expect(problems(file: text) == [problem])
    }

    @Test("a misspelt variable is an error; a foreign variable with our prefix is only reported")
    func variables() throws {
        #expect(
            problems(environment: ["THICKET_LISTN": "a:1"]) == [
                "THICKET_LISTN: unknown setting; did you mean THICKET_LISTEN?"
            ])
        let loaded: LoadedConfig = try load(environment: [
            "THICKET_PORT_8000_TCP": "tcp://10.0.0.1:8000", "HOME": "/", "THICKET_VECTORS": "x",
        ])
        #expect(loaded.ignoredVariables == ["THICKET_PORT_8000_TCP"])
    }

    @Test("comments, blank lines, quotes and Windows line ends are read")
    func fileForms() throws {
        let loaded: LoadedConfig = try load(
            file: "# ours\r\n\r\n  data = \"/srv/a # b\"  # not the end\n\tlisten=[::]:9 # all\nlog-level = debug\n")
        #expect(loaded.config.data == "/srv/a # b")
        #expect(loaded.config.listen == ListenAddress(host: "::", port: 9))
        #expect(loaded.config.logLevel == .debug)
    }

    @Test("all problems are reported at once")
    func all() {
        let found: [String] = problems(
            flags: [("metrics", "?")], environment: ["THICKET_IDLE_TIMEOUT": "1"], file: "nope = 1\nlisten = x")
        #expect(found.count == 4, "\(found)")
    }

    @Test("a secret value is shown as hidden")
    func secrets() throws {
        let secret: Setting = .text("data", \.data, isSecret: true, "A secret.")
        let loaded: LoadedConfig = try ConfigLoader(table: [secret]).load(flags: [("data", "hunter2")])
        #expect(loaded.text == "data = (hidden)  # flag\n")
        #expect(loaded.config.data == "hunter2")
    }

    @Test("the output of config is a file that sets the same values")
    func roundTrip() throws {
        let first: LoadedConfig = try load(flags: [
            ("data", "/srv/x # y"), ("document-bytes-max", "3MiB"), ("idle-timeout", "90s"), ("metrics", "off"),
        ])
        #expect(try load(file: first.text).config == first.config)
    }

    @Test("every setting has a unique name, a default within its bounds and a summary")
    func table() throws {
        let names: [String] = ServerSettings.all.map(\.name)
        #expect(Set(names).count == names.count)
        for setting in ServerSettings.all {
            #expect(setting.name.utf8.allSatisfy { (0x61...0x7A).contains($0) || $0 == 0x2D }, "\(setting.name)")
            #expect(setting.summary.hasSuffix("."), "\(setting.name)")
            let loaded: LoadedConfig = try load(flags: [(setting.name, setting.defaultText)])
            #expect(loaded.config == ServerConfig(), "\(setting.name)")
        }
    }
}
