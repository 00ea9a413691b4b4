// Claims, rules and covers count from the cycle after the first: before it, nothing is known of the state.
// Read by techmap, one module a kind of cell.

(* techmap_celltype = "$assert" *)
module begin_assert (input A, input EN);
    \$assert _TECHMAP_REPLACE_ (.A(A), .EN(EN & ~$initstate));
endmodule

(* techmap_celltype = "$cover" *)
module begin_cover (input A, input EN);
    \$cover _TECHMAP_REPLACE_ (.A(A), .EN(EN & ~$initstate));
endmodule

(* techmap_celltype = "$assume" *)
module begin_assume (input A, input EN);
    \$assume _TECHMAP_REPLACE_ (.A(A), .EN(EN & ~$initstate));
endmodule
