// swift-tools-version: 6.2
import PackageDescription

/// For every target of this package: Swift 6 mode, and a warning fails the build.
let strict: [SwiftSetting] = [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]

func library(
    _ name: String, _ path: String, _ needs: [Target.Dependency] = [], resources: [Resource] = [],
    settings: [SwiftSetting] = []
) -> Target {
    .target(name: name, dependencies: needs, path: path, resources: resources, swiftSettings: strict + settings)
}

/// The server's state belongs to one thread each. Debug builds, which all tests use, check at every access that a
/// property is not changed during another access to it; in release builds the checks took a tenth of the loop's time.
/// No product for other packages contains these targets.
let singleThreaded: [SwiftSetting] = [
    .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))
]

func program(_ name: String, _ path: String, _ needs: [Target.Dependency], exclude: [String] = []) -> Target {
    .executableTarget(name: name, dependencies: needs, path: path, exclude: exclude, swiftSettings: strict)
}

func tests(_ name: String, _ needs: [Target.Dependency]) -> Target {
    .testTarget(
        name: name, dependencies: needs + ["ThicketBlocking", "ThicketPlatform"], path: "Tests/\(name)",
        swiftSettings: strict)
}

// MARK: - What users install and link: Sources

let libraries: [Target] = [
    .systemLibrary(name: "CSQLite", path: "Sources/CLibs/CSQLite", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "COpenSSL", path: "Sources/CLibs/COpenSSL", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CCurl", path: "Sources/CLibs/CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CZlib", path: "Sources/CLibs/CZlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CUTF8Proc", path: "Sources/CLibs/CUTF8Proc", providers: [.apt(["libutf8proc-dev"])]),
    .systemLibrary(name: "CQRCode", path: "Sources/CLibs/CQRCode", providers: [.apt(["libqrencode-dev"])]),
    .systemLibrary(name: "CThicketNet", path: "Sources/CLibs/CThicketNet"),
    .systemLibrary(name: "CThicketTLS", path: "Sources/CLibs/CThicketTLS", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
        name: "CThicketScreen", path: "Sources/CLibs/CThicketScreen", providers: [.apt(["libncurses-dev"])]),
    .systemLibrary(name: "CThicketFiles", path: "Sources/CLibs/CThicketFiles"),
    .systemLibrary(name: "CThicketCores", path: "Sources/CLibs/CThicketCores"),
    .systemLibrary(name: "CThicketSpawn", path: "Sources/CLibs/CThicketSpawn"),

    // The operating system: threads, clocks, queues; hex and base64; instruments for metrics.
    library("ThicketPlatform", "Sources/Platform"),
    library("ThicketCommandLine", "Sources/CommandLine", ["ThicketPlatform"]),
    library("ThicketProtocol", "Sources/Protocol", ["ThicketPlatform"]),
    library("ThicketCrypto", "Sources/Crypto", ["ThicketPlatform", "COpenSSL", "CUTF8Proc"]),
    library("ThicketSQLite", "Sources/SQLite", ["CSQLite"]),
    // Authentication and authorization: pure decisions over directories that are passed in.
    library(
        "ThicketAuth", "Sources/Auth", ["ThicketKeyLog", "ThicketProtocol", "ThicketCrypto", "ThicketPlatform"]),
    // What a server can check of sealed content without being able to open it.
    library("ThicketSealedShape", "Sources/SealedShape", ["ThicketProtocol", "ThicketCrypto", "ThicketPlatform"]),
    // Sealed buckets: what devices do with content that the server cannot read. Pure.
    library(
        "ThicketSealed", "Sources/Sealed",
        ["ThicketSealedShape", "ThicketProtocol", "ThicketCrypto", "ThicketPlatform"]),
    // Which keys belong to which account: the log of keys, as a server keeps it and as devices verify it. Pure.
    library("ThicketKeyLog", "Sources/KeyLog", ["ThicketProtocol", "ThicketCrypto", "ThicketPlatform"]),
    // The tree of encrypted nodes, what a server can check of a record without keys. Pure.
    library("ThicketTreeShape", "Sources/TreeShape", ["ThicketProtocol", "ThicketCrypto", "ThicketPlatform"]),
    // What devices do with the tree: paths, names, keys, sealing of records. Pure.
    library(
        "ThicketTree", "Sources/Tree",
        ["ThicketTreeShape", "ThicketKeyLog", "ThicketProtocol", "ThicketCrypto", "ThicketPlatform"]),
    // Fairness between tenants, throttling, cost metering, preemption.
    library(
        "ThicketScheduling", "Sources/Scheduling", ["ThicketPlatform", "CThicketCores"], settings: singleThreaded),
    // One thread that serves sockets: event loop, HTTP, WebSocket, TLS.
    library(
        "ThicketNet", "Sources/Net",
        ["ThicketScheduling", "ThicketProtocol", "ThicketCrypto", "ThicketPlatform", "CThicketNet", "CThicketTLS"],
        settings: singleThreaded),
    library(
        "ThicketServer", "Sources/Server",
        [
            "ThicketNet", "ThicketScheduling", "ThicketAuth", "ThicketKeyLog", "ThicketSealedShape", "ThicketTreeShape",
            "ThicketSQLite", "ThicketProtocol", "ThicketCrypto", "ThicketCommandLine", "ThicketPlatform",
            "CThicketCores", "CCurl",
        ],
        resources: [.embedInCode("REST/openapi.yaml")], settings: singleThreaded),
    library(
        "ThicketClient", "Sources/Client",
        [
            "ThicketSealed", "ThicketKeyLog", "ThicketSQLite", "ThicketProtocol", "ThicketCrypto", "ThicketPlatform",
            "CCurl",
        ]),
    // The tree for apps, on top of the client library: nodes, changes, and their content on disk and in transfer.
    library(
        "ThicketTreesystem", "Sources/Treesystem",
        [
            "ThicketClient", "ThicketTree", "ThicketTreeShape", "ThicketKeyLog", "ThicketSQLite", "ThicketProtocol",
            "ThicketCrypto", "ThicketPlatform",
        ]),
    // Encrypted notes, on top of the client library.
    library(
        "ThicketOnions", "Sources/Onions", ["ThicketClient", "ThicketProtocol", "ThicketCrypto", "ThicketPlatform"]),
    // Recorded typing sessions, played through real clients.
    library(
        "ThicketReplay", "Sources/Replay",
        ["ThicketClient", "ThicketSealed", "ThicketProtocol", "ThicketCrypto", "CZlib"]),
    // Releases: manifests, their log, and proofs that a program belongs to a release. Pure.
    library("ThicketRelease", "Sources/Release", ["ThicketProtocol", "ThicketCrypto", "ThicketPlatform"]),
    library(
        "ThicketCLI", "Sources/CLI",
        [
            "ThicketClient", "ThicketTreesystem", "ThicketTree", "ThicketTreeShape", "ThicketOnions", "ThicketRelease",
            "ThicketReplay", "ThicketKeyLog", "ThicketProtocol", "ThicketCrypto", "ThicketCommandLine",
            "ThicketPlatform", "CThicketFiles", "CThicketScreen", "CQRCode",
        ]),
]

let shipped: [Target] = [
    program("thicketd", "Sources/thicketd", ["ThicketServer", "ThicketCommandLine"]),
    program("thicket", "Sources/thicket", ["ThicketCLI"]),
]

// MARK: - What builds, measures and attacks them: Tools

// Their libraries, which tests use too, are no products.
let tools: [Target] = [
    program(
        "thicket-release", "Tools/ReleaseLog",
        ["ThicketRelease", "ThicketProtocol", "ThicketCrypto", "ThicketCommandLine", "ThicketPlatform"]),
    // A real thicketd with a temporary data folder, for programs that kill it.
    library("ThicketServerProcess", "Tools/ServerProcess", ["CThicketSpawn"]),
    program(
        "thicket-demo", "Tools/Demo",
        [
            "ThicketReplay", "ThicketServerProcess", "ThicketAcceptance", "ThicketProcesses", "ThicketClient",
            "ThicketSealed", "ThicketSQLite",
        ]),
    // Compares a run's figures with those of an earlier one. Pure; outside the program, so that tests can import it.
    library("ThicketBenchComparison", "Tools/BenchComparison", ["ThicketProtocol"]),
    program(
        "thicket-bench", "Tools/Bench",
        [
            "ThicketBenchComparison", "ThicketReplay", "ThicketServerProcess", "ThicketTreesystem", "ThicketClient",
            "ThicketServer", "ThicketNet", "ThicketAuth", "ThicketProtocol", "ThicketCrypto", "ThicketSealed",
            "ThicketTree", "ThicketTreeShape", "ThicketKeyLog", "ThicketSQLite", "ThicketPlatform", "CThicketNet",
            "CThicketCores", "COpenSSL",
        ], exclude: ["Baselines"]),

    // A file system below SQLite that fails and crashes, and a model of its disk.
    library("ThicketFaultDisk", "Tools/FaultDisk", ["ThicketSQLite", "CSQLite"]),
    // The whole system in one process on a virtual clock: for SimulationTests and `./dev soak`.
    library(
        "ThicketSimulation", "Tools/Simulation",
        [
            "ThicketServer", "ThicketNet", "ThicketScheduling", "ThicketClient", "ThicketProtocol", "ThicketCrypto",
            "ThicketSQLite", "ThicketFaultDisk", "ThicketSealed", "ThicketTreeShape", "ThicketTree",
            "ThicketTreesystem", "ThicketPlatform",
        ]),
    program("thicket-soak", "Tools/Soak", ["ThicketSimulation", "ThicketCommandLine"]),
    library(
        "ThicketProcesses", "Tools/Processes",
        ["ThicketProtocol", "ThicketCrypto", "ThicketPlatform", "ThicketTestSupport", "CThicketSpawn"]),
    // A model of the server on a disk that crashes or fails at every call.
    library(
        "ThicketSweep", "Tools/Sweep",
        [
            "ThicketServer", "ThicketSQLite", "ThicketFaultDisk", "ThicketProtocol", "ThicketCrypto", "ThicketSealed",
            "ThicketProcesses", "ThicketTestSupport", "ThicketPlatform", "ThicketScheduling", "ThicketTreeShape",
        ]),
    program("thicket-crash", "Tools/Crash", ["ThicketProcesses", "ThicketSweep", "ThicketCommandLine"]),
    // Hours of mixed load on a real server.
    library(
        "ThicketEndurance", "Tools/Endurance",
        ["ThicketProcesses", "ThicketClient", "ThicketProtocol", "ThicketTestSupport"]),
    program("thicket-endure", "Tools/Endure", ["ThicketEndurance", "ThicketProcesses", "ThicketCommandLine"]),
    // Attackers over HTTP and sockets against a real server.
    library(
        "ThicketThreats", "Tools/Threats",
        ["ThicketProcesses", "ThicketProtocol", "ThicketCrypto", "ThicketPlatform", "ThicketTestSupport", "CZlib"]),
    program("thicket-threats", "Tools/ThreatRun", ["ThicketThreats", "ThicketProcesses", "ThicketCommandLine"]),
    // Scenarios of trees: a real server, and machines and devices of one user as processes.
    library(
        "ThicketAcceptance", "Tools/Acceptance",
        [
            "ThicketProcesses", "ThicketThreats", "ThicketClient", "ThicketTreesystem", "ThicketTree",
            "ThicketTreeShape", "ThicketCrypto", "ThicketPlatform", "ThicketTestSupport",
        ]),
    program("thicket-accept", "Tools/Accept", ["ThicketAcceptance", "ThicketProcesses", "ThicketCommandLine"]),
    library(
        "ThicketFuzz", "Tools/Fuzz/Targets",
        [
            "ThicketProtocol", "ThicketCrypto", "ThicketAuth", "ThicketSealed", "ThicketClient", "ThicketOnions",
            "ThicketRelease", "ThicketKeyLog", "ThicketTree", "ThicketTreeShape", "ThicketTreesystem",
            "ThicketPlatform",
        ]),
    // The entry point of libFuzzer. Tools/Fuzz/run links it with the fuzzer; this target only checks that it compiles.
    library("ThicketFuzzer", "Tools/Fuzz/Main", ["ThicketFuzz"]),
]

// MARK: - What shows how an app is built: Examples

let examples: [Target] = [
    // A messenger, after the example app of the seed.
    library(
        "WhatsZapp", "Examples/WhatsZapp/Library",
        ["ThicketTreesystem", "ThicketClient", "ThicketProtocol", "ThicketPlatform"]),
    program(
        "whatszapp", "Examples/WhatsZapp/Program",
        [
            "WhatsZapp", "ThicketCLI", "ThicketCommandLine", "ThicketTreesystem", "ThicketClient", "ThicketProtocol",

        ]),
]

// MARK: - Tests

let testSupport: [Target] = [
    library("ThicketTestSupport", "Tests/Support/Cases", ["ThicketProtocol"]),
    // ThicketBlocking: threads for tests that block. ThicketNonces, for tests that seal: detects a nonce that is used
    // twice with one key.
    library("ThicketBlocking", "Tests/Support/Blocking"),
    library("ThicketNonces", "Tests/Support/Nonces", ["ThicketCrypto"]),
    // Counts heap allocations, for the tests that link it.
    .target(name: "CThicketAllocations", path: "Tests/Support/Allocations"),
    library(
        "ThicketTestServer", "Tests/Support/TestServer",
        ["ThicketServer", "ThicketNet", "ThicketAuth", "ThicketProtocol", "ThicketCrypto", "ThicketTestSupport"]),
]

let suites: [Target] = [
    tests(
        "ReleaseTests",
        [
            "ThicketRelease", "ThicketProtocol", "ThicketCrypto", "ThicketProcesses", "ThicketTestSupport",
            "thicket-release", "thicket",
        ]),
    tests("BenchTests", ["ThicketBenchComparison"]),
    tests("SimulationTests", ["ThicketSimulation", "ThicketNonces"]),
    tests("CommandLineTests", ["ThicketCommandLine", "ThicketProcesses"]),
    tests(
        "ProtocolTests",
        ["ThicketProtocol", "ThicketCrypto", "ThicketFuzz", "ThicketTestSupport", "ThicketNonces"]),
    tests(
        "KeyLogTests",
        ["ThicketKeyLog", "ThicketProtocol", "ThicketCrypto", "ThicketNonces", "ThicketTestSupport"]),
    tests(
        "TreeTests",
        [
            "ThicketTree", "ThicketTreeShape", "ThicketKeyLog", "ThicketProtocol", "ThicketCrypto", "ThicketNonces",
            "ThicketTestSupport",
        ]),
    tests(
        "TreesystemTests",
        [
            "ThicketTreesystem", "ThicketClient", "ThicketTree", "ThicketTreeShape", "ThicketKeyLog", "ThicketSQLite",
            "ThicketProtocol", "ThicketCrypto", "ThicketNonces", "ThicketTestSupport", "ThicketFaultDisk",
            "ThicketTestServer", "ThicketServer",
        ]),
    tests("SQLiteTests", ["ThicketFaultDisk", "ThicketSQLite", "ThicketTestSupport"]),
    tests(
        "AuthTests",
        [
            "ThicketNet", "ThicketScheduling",
            "ThicketAuth", "ThicketKeyLog", "ThicketTestServer", "ThicketServer", "ThicketProtocol", "ThicketCrypto",
            "ThicketSQLite",
            "ThicketTestSupport", "CThicketAllocations",
        ]),
    tests("CryptoTests", ["ThicketCrypto", "ThicketProtocol", "ThicketTestSupport", "ThicketNonces"]),
    tests(
        "OnionTests",
        [
            "ThicketNet",
            "ThicketOnions", "ThicketClient", "ThicketProtocol", "ThicketCrypto", "ThicketServer", "ThicketAuth",
            "ThicketTestServer", "ThicketTestSupport", "ThicketProcesses",
        ]),
    tests(
        "SealedTests",
        [
            "ThicketSealed", "ThicketProtocol", "ThicketCrypto", "ThicketTestSupport", "ThicketProcesses",
            "ThicketNonces",
        ]),
    tests(
        "ServerTests",
        [
            "ThicketNet", "ThicketScheduling", "ThicketFaultDisk",
            "ThicketServer", "ThicketAuth", "ThicketProtocol", "ThicketCrypto", "ThicketSQLite",
            "ThicketKeyLog", "ThicketSealedShape", "ThicketTreeShape",
            "ThicketCommandLine", "ThicketTestSupport", "ThicketProcesses", "ThicketSweep", "CThicketCores",
            "CThicketNet", "CThicketAllocations",
        ]),
    tests(
        "IntegrationTests",
        [
            "ThicketNet", "ThicketScheduling",
            "ThicketTestServer", "ThicketServer", "ThicketProtocol", "ThicketCrypto", "ThicketSQLite",
            "ThicketTreeShape", "ThicketTestSupport",
        ]),
    tests(
        "ProcessTests",
        [
            "ThicketProcesses", "ThicketEndurance", "ThicketAcceptance", "ThicketProtocol", "ThicketServer",
            "ThicketSQLite", "ThicketTestSupport", "thicketd", "thicket", "thicket-accept",
        ]),
    tests(
        "ThreatTests",
        [
            "ThicketThreats", "ThicketProcesses", "ThicketClient", "ThicketSealed", "ThicketOnions",
            "ThicketProtocol", "ThicketCrypto", "ThicketTestSupport", "thicketd", "thicket",
        ]),
    tests(
        "ExampleTests",
        [
            "ThicketClient", "ThicketProcesses", "ThicketProtocol", "ThicketTestSupport", "thicketd",
        ]),
    tests(
        "WhatsZappTests",
        [
            "WhatsZapp", "ThicketTreesystem", "ThicketClient", "ThicketProtocol", "ThicketCrypto", "ThicketProcesses",
            "thicketd", "thicket", "whatszapp",
        ]),
    tests("TidyTests", ["ThicketServer", "ThicketProtocol", "ThicketCLI", "ThicketCommandLine"]),
    tests(
        "ReplayTests",
        [
            "ThicketServerProcess",
            "ThicketSealed", "ThicketReplay", "ThicketClient", "ThicketProtocol", "ThicketTestSupport",
            "ThicketProcesses",
            "thicketd",
            "thicket",
            "thicket-demo",
        ]),
    tests(
        "CLITests",
        [
            "ThicketCLI", "ThicketClient", "ThicketTreesystem", "ThicketTree", "ThicketTreeShape",
            "ThicketCommandLine", "ThicketProcesses", "ThicketProtocol", "ThicketCrypto", "ThicketTestSupport",
            "ThicketThreats", "ThicketKeyLog", "ThicketSQLite", "thicketd", "thicket",
        ]),
    tests(
        "ClientTests",
        [
            "ThicketFaultDisk", "ThicketNet",
            "ThicketClient", "ThicketSealed", "ThicketKeyLog", "ThicketProtocol", "ThicketCrypto", "ThicketSQLite",
            "ThicketServer", "ThicketAuth", "ThicketTestServer", "ThicketTestSupport", "ThicketProcesses",
            "ThicketNonces",
        ]),
]

// MARK: - The package

let package = Package(
    name: "thicket",
    // For the client library, whose Linux-only parts are marked: these versions have Synchronization. The server runs
    // on Linux.
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "ThicketProtocol", targets: ["ThicketProtocol"]),
        .library(name: "ThicketClient", targets: ["ThicketClient"]),
        .library(name: "ThicketTreesystem", targets: ["ThicketTreesystem", "ThicketTree", "ThicketTreeShape"]),
        .executable(name: "thicketd", targets: ["thicketd"]),
        .executable(name: "thicket", targets: ["thicket"]),
    ],
    targets: libraries + shipped + tools + examples + testSupport + suites
)
