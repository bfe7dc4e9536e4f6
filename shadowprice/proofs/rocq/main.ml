(* Reads a certificate and asks the checker that was extracted. Trusted: this file, the mapping of numbers in
   Extract.v, OCaml, Zarith, and the digests of the library `sha`.

   A line of a certificate is the one way to write its record: an object with sorted keys, without spaces,
   in ASCII. The parser accepts nothing else, so nothing has to be written again to be compared. *)

module Big = Z  (* Zarith; the extracted code has a module Z of its own *)
open Proven

exception Rejected of string
exception Not_covered of string

let reject format = Printf.ksprintf (fun message -> raise (Rejected message)) format
let need fine format = Printf.ksprintf (fun message -> if not fine then raise (Rejected message)) format

type value = Whole of Big.t | Text of string | Row of value list | Record of (string * value) list

(* ---- one line ---------------------------------------------------------------------------------- *)

let parse number line =
  let length = String.length line in
  let at = ref 0 in
  let wrong what = reject "line %d, character %d: %s" number (!at + 1) what in
  let peek () = if !at < length then line.[!at] else wrong "the line ends too early" in
  let next () = let c = peek () in incr at; c in
  let expect c = if next () <> c then (decr at; wrong (Printf.sprintf "%C expected" c)) in
  let hexadecimal () =
    let digits = Bytes.create 4 in
    for k = 0 to 3 do
      match next () with
      | ('0' .. '9' | 'a' .. 'f') as c -> Bytes.set digits k c
      | _ -> wrong "an escape is not in canonical form"
    done;
    int_of_string ("0x" ^ Bytes.to_string digits) in
  (* What Python writes without an escape, or with a short one, must be written so. Escapes of characters
     that are not printable ASCII are kept, behind a character that stands nowhere else. *)
  let text () =
    expect '"';
    let found = Buffer.create 16 in
    let rec more () =
      match next () with
      | '"' -> Buffer.contents found
      | '\\' ->
        (match next () with
         | ('"' | '\\') as c -> Buffer.add_char found c
         | ('n' | 'r' | 't' | 'b' | 'f') as c -> Buffer.add_string found (Printf.sprintf "\001%c" c)
         | 'u' ->
           let code = hexadecimal () in
           let short = List.mem code [8; 9; 10; 12; 13] || (code >= 32 && code < 127) in
           if short then wrong "an escape is not in canonical form";
           Buffer.add_string found (Printf.sprintf "\001u%04x" code)
         | _ -> wrong "an escape is not in canonical form");
        more ()
      | ' ' .. '~' as c -> Buffer.add_char found c; more ()
      | _ -> wrong "a character is not printable ASCII" in
    more () in
  let whole () =
    let first = !at in
    if peek () = '-' then incr at;
    let digits = !at in
    while !at < length && line.[!at] >= '0' && line.[!at] <= '9' do incr at done;
    let written = String.sub line first (!at - first) in
    let zero_first = !at - digits > 1 && line.[digits] = '0' in
    if !at = digits || zero_first || written = "-0" then wrong "no number in canonical form";
    Big.of_string written in
  let rec value () =
    match peek () with
    | '"' -> Text (text ())
    | '[' ->
      incr at;
      if peek () = ']' then (incr at; Row []) else begin
        let rec more found =
          let found = value () :: found in
          match next () with
          | ',' -> more found
          | ']' -> Row (List.rev found)
          | _ -> wrong "',' or ']' expected" in
        more []
      end
    | '{' ->
      incr at;
      if peek () = '}' then (incr at; Record []) else begin
        let rec more found =
          let key = text () in
          (match found with
           | (before, _) :: _ when compare before key >= 0 -> wrong "keys are not sorted"
           | _ -> ());
          expect ':';
          let found = (key, value ()) :: found in
          match next () with
          | ',' -> more found
          | '}' -> Record (List.rev found)
          | _ -> wrong "',' or '}' expected" in
        more []
      end
    | '-' | '0' .. '9' -> Whole (whole ())
    | _ -> wrong "no value in canonical form" in
  let found = value () in
  if !at <> length then wrong "something follows the record";
  match found with
  | Record fields -> fields
  | _ -> reject "line %d is not an object" number

(* ---- values -------------------------------------------------------------------------------------- *)

let largest = Big.pow (Big.of_int 2) 100
let most = Big.pow (Big.of_int 10) 1000

let field fields name =
  match List.assoc_opt name fields with
  | Some value -> value
  | None -> reject "a record lacks the field %s" name

let whole ?(least = Big.zero) what = function
  | Whole n when Big.leq least n && Big.leq n largest -> n
  | _ -> reject "%s is not an integer from %s to 2^100" what (Big.to_string least)

let small what value =
  let n = whole what value in
  need (Big.fits_int n) "%s is too large" what;
  Big.to_int n

let rows what = function Row found -> found | _ -> reject "%s is no list" what

let pair what = function
  | Row [first; second] -> (first, second)
  | _ -> reject "%s is not a pair" what

let name what = function
  | Text found ->
    (* An escape that was kept: beyond ASCII, or a control character. Which of the former print, only
       tables of Unicode say. *)
    let escaped = ref false and beyond = ref false in
    String.iteri
      (fun k c ->
         if c = '\001' then
           if found.[k + 1] = 'u' && not (String.sub found (k + 2) 2 = "00" && found.[k + 4] < '8')
           then beyond := true
           else escaped := true)
      found;
    let length = String.length found in
    need (length > 0 && length <= 1000 && not !escaped) "%s is not a printable name of 1 to 1,000 characters" what;
    if !beyond then raise (Not_covered (what ^ " is not ASCII"));
    found
  | _ -> reject "%s is not a name" what

let fraction numerator denominator = { qnum = numerator; qden = denominator }

let rational what = function
  | Whole n when Big.leq Big.zero n && Big.lt n most -> fraction n Big.one
  | Text written ->
    let fine part =
      let length = String.length part in
      length > 0 && length <= 1000 && (length = 1 || part.[0] <> '0')
      && String.for_all (fun c -> c >= '0' && c <= '9') part in
    (match String.split_on_char '/' written with
     | [numerator; denominator] when fine numerator && fine denominator ->
       let n = Big.of_string numerator and d = Big.of_string denominator in
       need (Big.gt d Big.one && Big.equal (Big.gcd n d) Big.one) "%s is not in lowest terms" what;
       fraction n d
     | _ -> reject "%s is not an integer or \"p/q\"" what)
  | _ -> reject "%s is not an integer or \"p/q\" >= 0" what

(* ---- records ------------------------------------------------------------------------------------- *)

let fields_of = [
  "header", ["format"; "migration"; "objective"; "policy"; "restart"; "start"];
  "node", ["gpus"; "node"; "type"];
  "job", ["arrival"; "gpus"; "id"; "job"; "run"; "weight"];
  "run", ["end"; "job"; "overhead"; "pieces"; "start"];
  "bound", ["bound"; "grid"; "prices"];
  "claim", ["bound"; "class"; "cost"; "file"; "instance"; "ratio"];
]

(* Fields of a header that there need not be. *)
let of_some_headers = ["preemption"; "types"]

let kinds = List.map fst fields_of

(* Bounds that are not proven. *)
let bounds_beyond = ["fluid"; "mean-busy-time"; "wide-gangs"; "configurations"; "completion-windows"; "typed-interval-lp";
  "speed-up-power"; "list-schedules"]

(* Those at prices of resources, or of what these are of. *)
let prefixes_beyond = ["priced-fluid"; "priced-mean-busy-time"; "priced-span"; "interval-lp-of-"]

let is_beyond bound =
  List.mem bound bounds_beyond
  || List.exists
       (fun prefix ->
          String.length prefix <= String.length bound
          && String.sub bound 0 (String.length prefix) = prefix)
       prefixes_beyond

(* Records and fields of instances beyond plain gangs, of which the proof does not speak. *)
let kinds_beyond = ["copies"; "checkpoints"; "network"; "fault"; "quota"; "widths"; "profile"; "graph"]

let fields_beyond = [
  "header", ["placement"; "window"; "stopped"; "utility"; "round"; "rounds"; "starts"];
  "node", ["cpus"; "memory"];
  "job", ["part"; "spread"; "widths"; "profile"; "sort"; "beside"; "graph"; "work"; "steps"; "rate"; "quota"; "worth"; "deadline"];
  "run", ["partner"; "goes_on"; "copy"; "steps"];
]

let position kind = 
  let rec find k = function
    | [] -> None
    | first :: rest -> if first = kind then Some k else find (k + 1) rest in
  find 0 kinds

let digest lines = Sha256.to_hex (Sha256.string (String.concat "\n" lines))

(* The words of a class, in which what a start takes is a number of seconds. *)
let need_class header start written =
  let words name value phrase = match List.assoc_opt name header with
    | None -> ""
    | Some (Text found) when found = value -> phrase
    | Some _ -> reject "%s is not %s" name value in
  let types = words "types" "ample" ", no gang uses a GPU type with fewer GPUs than it" in
  let after = words "preemption" "restart" ", jobs restart when preempted" in
  let before = "preemptive schedules in which no two jobs share a GPU" ^ types in
  if Big.equal start Big.zero then need (written = before ^ after) "the class is another"
  else begin
    let before = before ^ ", a start takes " and after = " s" ^ after in
    let length = String.length written - String.length before - String.length after in
    need (length > 0 && String.starts_with ~prefix:before written && String.ends_with ~suffix:after written)
      "the class is another";
    (* Beyond 2^53 ticks there are fewer doubles than numbers of ticks. *)
    if Big.gt start (Big.pow (Big.of_int 2) 53) then raise (Not_covered "what a start takes");
    let seconds = String.sub written (String.length before) length in
    let decimal = String.for_all (fun c -> (c >= '0' && c <= '9') || String.contains ".e-" c) seconds in
    need (decimal && float_of_string_opt seconds = Some (Big.to_float start /. 1048576.0)) "the class is another"
  end

(* The line of the claim without its field `file`, which is the digest of all lines. *)
let unsigned line signature =
  let part = Printf.sprintf {|"file":"%s",|} signature in
  let length = String.length part in
  let rec find k =
    if k + length > String.length line then reject "the digest of the file is no text"
    else if String.sub line k length = part then k
    else find (k + 1) in
  let k = find 0 in
  String.sub line 0 k ^ String.sub line (k + length) (String.length line - k - length)

let read text =
  need (text <> "" && text.[String.length text - 1] = '\n') "the file does not end with a line break";
  let lines = String.split_on_char '\n' (String.sub text 0 (String.length text - 1)) in
  let latest = ref 0 in
  let records =
    List.mapi
      (fun k line ->
         let number = k + 1 in
         let record = parse number line in
         let kind = match List.assoc_opt "kind" record with
           | Some (Text kind) -> kind
           | _ -> reject "line %d has no kind" number in
         if List.mem kind kinds_beyond then raise (Not_covered ("a record of kind " ^ kind));
         let place = match position kind with
           | Some place -> place
           | None -> reject "line %d: kind is %S" number kind in
         need (place >= !latest) "line %d: %s comes too late" number kind;
         latest := place;
         (match kind, List.assoc_opt "bound" record with
          | "bound", Some (Text bound) when is_beyond bound -> raise (Not_covered ("the bound " ^ bound))
          | _ -> ());
         let fields = List.filter (fun (key, _) -> key <> "kind") record in
         let names = List.map fst fields in
         let beyond = Option.value ~default:[] (List.assoc_opt kind fields_beyond) in
         let plain, more = List.partition (fun name -> not (List.mem name beyond)) names in
         let plain = if kind = "header" then List.filter (fun name -> not (List.mem name of_some_headers)) plain else plain in
         need (plain = List.assoc kind fields_of) "line %d: fields of %s" number kind;
         if more <> [] then raise (Not_covered ("the field " ^ List.hd more));
         (kind, fields, line))
      lines in
  let of_kind kind = List.filter (fun (k, _, _) -> k = kind) records in
  let one kind = match of_kind kind with
    | [(_, fields, line)] -> (fields, line)
    | found -> reject "%d lines are of kind %s, not one" (List.length found) kind in
  let all kind = List.map (fun (_, fields, _) -> fields) (of_kind kind) in
  let header, _ = one "header" and bound, _ = one "bound" and claim, claim_line = one "claim" in
  need (field header "format" = Whole (Big.of_int 3)) "format is not 3";
  let given = List.filter_map (fun (k, _, line) -> if k = "node" || k = "job" then Some line else None) records in
  need (field claim "instance" = Text (digest given)) "the digest of the instance is another";
  (match field claim "file" with
   | Text signature ->
     let before = List.filteri (fun k _ -> k < List.length lines - 1) lines in
     need (signature = digest (before @ [unsigned claim_line signature]))
       "the digest of the file is another"
   | _ -> reject "the digest of the file is no text");
  (header, all "node", all "job", all "run", bound, claim)

(* ---- certificate --------------------------------------------------------------------------------- *)

let certificate_of (header, nodes, jobs, runs, bound, claim) =
  need (jobs <> [] && nodes <> []) "there are no jobs or no nodes";
  let policy = name "policy" (field header "policy") in
  let types = Hashtbl.create 8 in
  let type_number written =
    match Hashtbl.find_opt types written with
    | Some number -> number
    | None -> let number = Hashtbl.length types in Hashtbl.add types written number; number in
  let node k fields =
    need (small "node" (field fields "node") = k) "node %d is out of order" k;
    { gpus = whole ~least:Big.one "GPUs of a node" (field fields "gpus");
      gpu_type = type_number (name "type of a node" (field fields "type")) } in
  let nodes = List.mapi node nodes in
  let ids = Hashtbl.create 1024 in
  let job k fields =
    need (small "job" (field fields "job") = k) "job %d is out of order" k;
    let id = name "id of a job" (field fields "id") in
    need (not (Hashtbl.mem ids id)) "job %d has the id of another" k;
    Hashtbl.add ids id ();
    let times = match field fields "run" with
      | Record [] -> reject "job %d can run nowhere" k
      | Record times ->
        List.map
          (fun (on, ticks) ->
             match Hashtbl.find_opt types on with
             | Some number -> (number, whole ~least:Big.one "run time" ticks)
             | None -> reject "job %d has a run time on a type that no node is of" k)
          times
      | _ -> reject "run times of job %d are no record" k in
    { arrival = whole "arrival" (field fields "arrival");
      gang = whole ~least:Big.one "gang" (field fields "gpus");
      weight = rational "weight" (field fields "weight");
      times } in
  let jobs = List.mapi job jobs in
  let run fields =
    let start = whole "start of a run" (field fields "start") in
    let pieces =
      List.map
        (fun piece ->
           let on, gpus = pair "a piece" piece in
           (small "node of a run" on, whole ~least:Big.one "GPUs of a run" gpus))
        (rows "pieces" (field fields "pieces")) in
    let rec increasing = function
      | (first, _) :: ((second, _) :: _ as rest) -> first < second && increasing rest
      | _ -> true in
    need (increasing pieces) "nodes of a run are out of order";
    { of_job = small "job of a run" (field fields "job");
      start; stop = whole ~least:(Big.succ start) "end of a run" (field fields "end");
      overhead = whole "overhead" (field fields "overhead"); pieces } in
  let runs = List.map run runs in
  let rec in_order = function
    | first :: (second :: _ as rest) -> Big.leq first.start second.start && in_order rest
    | _ -> true in
  need (in_order runs) "runs are not in order of their starts";
  let charge entry =
    let gang, ticks = pair "a restart" entry in
    (whole ~least:Big.one "gang of a restart" gang, whole "restart" ticks) in
  let restarts = List.map charge (rows "restarts" (field header "restart")) in
  let rec increasing = function
    | (first, _) :: ((second, _) :: _ as rest) -> Big.lt first second && increasing rest
    | _ -> true in
  need (restarts <> [] && increasing restarts) "gangs of restarts do not increase";
  let charged =
    { start_charge = whole "start" (field header "start");
      migration = whole "migration" (field header "migration"); restarts } in
  let objective = match field header "objective" with
    | Text "completion" -> Completion
    | Text "flow" -> Flow
    | Text "makespan" -> Makespan
    | _ -> reject "the objective is unknown" in
  let grid = List.map (whole "grid") (rows "grid" (field bound "grid")) in
  let priced = rows "prices" (field bound "prices") in
  let prices () = List.map (whole "price") priced in
  let multipliers = match field bound "bound" with
    | Text "interval-lp" ->
      (* Further than any schedule that does not wait for nothing; the proof does without. *)
      let shortest job = List.fold_left (fun least (_, t) -> Big.min least t) (snd (List.hd job.times)) job.times in
      let latest = List.fold_left (fun latest job -> Big.max latest job.arrival) Big.zero jobs in
      let longest sum job = Big.add sum (Big.add (shortest job) charged.start_charge) in
      let all = List.fold_left longest latest jobs in
      need (grid <> [] && Big.geq (List.nth grid (List.length grid - 1)) all) "the grid ends too early";
      IntervalPrices (grid, prices ())
    | Text "priced-plans" -> PlanPrices (grid, prices ())
    | Text "job" -> need (grid = [] && priced = []) "job takes no prices"; Alone
    | Text "area" -> need (grid = [] && priced = []) "area takes no prices"; Area
    | _ -> reject "the bound is unknown" in
  need ((multipliers = Area) = (objective = Makespan)) "the bound is none of the objective";
  (match field claim "class" with
   | Text written -> need_class header charged.start_charge written
   | _ -> reject "the class is no text");
  let claimed_ratio = rational "ratio" (field claim "ratio") in
  ( policy,
    { of_instance = { nodes; jobs; charged; lost = List.mem_assoc "preemption" header }; of_schedule = runs; of_objective = objective;
      by_multipliers = multipliers;
      claimed_cost = rational "cost" (field claim "cost");
      claimed_bound = rational "bound" (field claim "bound");
      claimed_ratio } )

let contents path =
  let file = open_in_bin path in
  Fun.protect ~finally:(fun () -> close_in file) (fun () -> really_input_string file (in_channel_length file))

(* 0: proven, 1: rejected, 2: not covered. *)
let verdict path =
  try
    let policy, certificate = certificate_of (read (contents path)) in
    need (check certificate) "the claim is not proven";
    let { qnum; qden } = certificate.claimed_ratio in
    Printf.printf "%s: proven: %s costs at most %s/%s times any schedule of its instance\n" path policy
      (Big.to_string qnum) (Big.to_string qden);
    0
  with
  | Rejected message | Sys_error message -> Printf.printf "%s: rejected: %s\n" path message; 1
  | Not_covered what -> Printf.printf "%s: not covered by the proof: %s\n" path what; 2
  | Stack_overflow | Out_of_memory -> Printf.printf "%s: rejected: too large for this program\n" path; 1

let () =
  match Array.to_list Sys.argv with
  | _ :: (_ :: _ as paths) -> exit (List.fold_left (fun worst path -> max worst (verdict path)) 0 paths)
  | _ -> prerr_endline "usage: proven-checker CERTIFICATE ..."; exit 64
